package project

import (
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
)

// checkPlaces returns an error if one of coven's own directories in the repository is a symbolic link,
// because coven would write elsewhere.
func checkPlaces(root string) error {
	for _, name := range []string{session.Dir, ".coven/worktrees", ".coven/run"} {
		err := regularfile.Directory(root, name)
		if link := (*regularfile.LinkError)(nil); errors.As(err, &link) {
			return link
		}
		if err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
	}
	return nil
}
