package isolation

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// While a program of the task can write to the worktree's git directory, git outside the sandbox must not use that
// directory: an editor or a shell prompt would run the programs that its configuration names. Meanwhile the worktree's
// .git file names a directory that does not exist. Programs of the task see another .git file, which the sandbox
// mounts over it.

// Files returns the files that programs of the task must see instead of those in the worktree, with their contents.
func Files(w *repo.Worktree) map[string]string {
	return map[string]string{gitFile(w): linkTo(w.Admin)}
}

func gitFile(w *repo.Worktree) string { return filepath.Join(w.Path, ".git") }

// linkTo returns the content of a .git file that names a git directory.
func linkTo(dir string) string { return "gitdir: " + dir + "\n" }

// closeGit makes git outside the sandbox refuse the worktree, if the programs of the task see their own .git file.
func closeGit(w *repo.Worktree) error {
	if !w.OwnGitFile {
		return openGit(w)
	}
	path := gitFile(w)
	return errors.Join(putFile(w, path, linkTo(w.StatePath(names.Closed))),
		os.Chmod(path, 0o444)) // `git worktree repair` would open a file that it can write
}

// openGit lets git use the worktree.
func openGit(w *repo.Worktree) error { return putFile(w, gitFile(w), linkTo(w.Admin)) }
