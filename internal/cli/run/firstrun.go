package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// newHere explains the files that the first run leaves in a repository. It returns "" if there was a run before.
func newHere(p *project.Project) string {
	root := p.Repo.Root
	if !missing(filepath.Join(root, session.Dir)) {
		return ""
	}
	if missing(filepath.Join(root, ".beads")) {
		return "first run here: .coven/ holds settings to commit and records that git ignores"
	}
	return "first run here: .coven/ holds settings and .beads/ tasks, to commit; git ignores the records"
}

// idle returns the command to recommend if no task is ready: other tasks may run, or wait for the user.
func idle(p *project.Project) string {
	all, err := p.Finder.Known()
	if err != nil || slices.ContainsFunc(all, func(s session.Summary) bool { return !s.IsOver() }) {
		return "coven status"
	}
	return "coven run -p TEXT"
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// committer warns about changes that would not land in the user's name.
func committer(ctx context.Context, p *project.Project) (string, error) {
	known, err := p.Repo.HasIdentity(ctx)
	if known || err != nil {
		return "", err
	}
	return "warning: git does not know your name: changes land under the name of coven (git config --global user.name NAME, and user.email)", nil
}
