package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// PlainGit returns a git.Repo for the objects and refs of the repository with a separate, minimal
// configuration. An agent may have changed the repository's configuration, or made it unreadable.
func (r *Repo) PlainGit() (git.Repo, error) {
	if file.Exists(filepath.Join(r.GitDir, "reftable")) {
		return r.Git(), nil // the refs are not files, so git needs the repository's configuration to write them
	}
	dir := r.OwnStatePath("plain")
	g := git.Repo{Dir: dir, Store: r.Store} // the configuration only contains the format, and the sharing
	if err := git.PrepareDir(dir, git.MinimalConfig(r.Format, true)+r.Sharing.config(), nil); err != nil {
		return g, fmt.Errorf("prepare git: %w", err)
	}
	for _, name := range []string{"objects", "refs", "packed-refs", "shallow"} {
		err := os.Symlink(filepath.Join(r.GitDir, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return g, fmt.Errorf("prepare git: %w", err)
		}
	}
	return g, nil
}
