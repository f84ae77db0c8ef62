package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/session"
)

// nextDamaged is the command that helps with a damaged session.
func nextDamaged(e *session.DamagedError) string {
	dir := shellWord(filepath.Join(session.Dir, e.Session))
	switch {
	case errors.Is(e, event.ErrVersion):
		return "go install github.com/coven-run/coven/cmd/coven@latest"
	case errors.Is(e, fs.ErrPermission):
		return "chmod -R u+rwX " + dir
	}
	return "coven doctor --fix"
}

// damagedView is a damaged session as status lists it.
func damagedView(e *session.DamagedError) session.View {
	v := e.View()
	v.Next = nextDamaged(e)
	return v
}

// linkHint is what to do about a link in the place of a directory of coven's.
func linkHint(e *regularfile.LinkError) string {
	if e.To == "" {
		return "mv " + shellWord(e.Path) + " " + shellWord(e.Path+".moved")
	}
	return "rm " + shellWord(e.Path)
}

// checkPlaces refuses a repository in which coven's own directories are links: what
// coven writes there would be elsewhere.
func checkPlaces(root string) error {
	for _, name := range []string{session.Dir, ".coven/worktrees", ".coven/run"} {
		err := regularfile.Directory(root, name)
		if link := (*regularfile.LinkError)(nil); errors.As(err, &link) {
			return &exitError{code: exitUsage, err: link, next: linkHint(link)}
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
	}
	return nil
}
