package worktree

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// here fails with ErrNoWorktree when W is gone: no directory, or an empty one.
// One that holds no more than .git is there: the agent has deleted all files.
// While Recreate is at work, or was killed, W counts as gone: what it holds is
// not what anybody left there.
func (w *Worktree) here() error {
	vacant, err := w.vacant()
	if err != nil {
		return fmt.Errorf("look at %s: %w", w.Path, err)
	}
	if vacant {
		return fmt.Errorf("task %s: %s is gone: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	if info, err := os.Stat(w.Path); err != nil || !info.IsDir() {
		return fmt.Errorf("task %s: %s is not a directory any more: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	rec, err := w.repo.readRecord(w.name)
	if err == nil && rec.Again && !w.partial {
		return fmt.Errorf("task %s: %s is not made again yet: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	return nil
}

// vacant reports whether nothing at all is where W belongs.
func (w *Worktree) vacant() (bool, error) {
	if !isThere(w.Path) {
		return true, nil
	}
	info, err := os.Lstat(w.Path)
	if err != nil || !info.IsDir() {
		return false, err
	}
	dir, err := os.Open(w.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	_, err = dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// orGone makes clear that something failed because W went away meanwhile.
func (w *Worktree) orGone(err error) error {
	if err == nil || errors.Is(err, ErrNoWorktree) {
		return err
	}
	if gone := w.here(); errors.Is(gone, ErrNoWorktree) {
		return errors.Join(gone, err)
	}
	return err
}
