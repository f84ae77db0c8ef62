package isolation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// filterState lists the directories in a git directory in which filters keep keys and scripts: those of git-crypt,
// git-agecrypt and transcrypt. Each of them looks in the worktree's git directory or in the common one.
var filterState = []string{"git-crypt", "git-agecrypt", "crypt"}

// putFilterState makes links to the filters' state, which the sandbox lets programs read but not change.
func putFilterState(w *repo.Worktree) error {
	for _, name := range filterState {
		if info, err := os.Stat(filepath.Join(w.Repo.GitDir, name)); err != nil || !info.IsDir() {
			continue
		}
		for _, link := range []string{filepath.Join(w.Admin, name), PrivatePath(w, name)} {
			if IsFilterState(w, link) {
				continue
			}
			if _, err := os.Lstat(link); err == nil { // of the agent
				if err := SetAsidePrivate(w, link); err != nil {
					return err
				}
			}
			if err := os.Symlink(filepath.Join(w.Repo.GitDir, name), link); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}

// IsFilterState reports whether a path in the worktree's git directory is one of the links.
func IsFilterState(w *repo.Worktree, path string) bool {
	name := filepath.Base(path)
	target, err := os.Readlink(path)
	return err == nil && slices.Contains(filterState, name) && target == filepath.Join(w.Repo.GitDir, name)
}
