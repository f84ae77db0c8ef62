package repo

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
)

// A MovedError means that a person has moved the worktree of a task. coven does not follow it: the agent can write the
// file in which git stores the path.
type MovedError struct{ Task, Path, To string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("task %s: %s was moved to %s: %v", e.Task, e.Path, e.To, ErrNoWorktree)
}

// Is reports that the worktree is missing.
func (e *MovedError) Is(target error) bool { return target == ErrNoWorktree }

// CommandExit returns exit.Person.
func (e *MovedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that moves the worktree back.
func (e *MovedError) NextCommand() string {
	return "git worktree move " + shellword.Word(e.To) + " " + shellword.Word(e.Path)
}

// movedTo returns the directory to which a person has moved the worktree with git worktree move, or "".
func (w *Worktree) movedTo() string {
	if w.Admin == "" || file.Exists(w.Path) {
		return ""
	}
	to := w.Repo.AdminPath(filepath.Base(w.Admin))
	if to == "" || to == w.Path || filepath.Clean(w.Repo.GitDirOf(to)) != w.Admin {
		return ""
	}
	return to
}

// A GoneError means that a worktree is that of a repository that is no longer where it was.
type GoneError struct{ Worktree, Repository string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%s is a worktree of %s, which was moved or removed", e.Worktree, e.Repository)
}

// CommandExit returns exit.Usage.
func (e *GoneError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that connects the worktree with the repository.
func (e *GoneError) NextCommand() string {
	return "git -C NEW-PATH worktree repair " + shellword.Word(e.Worktree)
}

// gone returns a *GoneError if a directory is in a worktree whose repository does not exist, or nil.
func gone(dir string) error {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if !file.Exists(filepath.Join(at, ".git")) {
			continue
		}
		admin := (&Repo{Root: at, Memo: &memo{}}).GitDirOf(at)
		main, _, linked := strings.Cut(admin, "/.git/worktrees/")
		if linked && !file.Exists(filepath.Join(main, ".git")) {
			return &GoneError{Worktree: at, Repository: main}
		}
		return nil
	}
	return nil
}
