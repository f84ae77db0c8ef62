package worktree

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coven-run/coven/worktree/internal/file"
)

// here fails with ErrNoWorktree if W does not exist or is empty. A W that contains only
// .git exists: the agent deleted all files. During Recreate, and after a killed one, W
// counts as missing because its content is incomplete.
func (w *Worktree) here() error {
	vacant, err := w.vacant()
	if err != nil {
		return fmt.Errorf("check %s: %w", w.Path, err)
	}
	if vacant {
		return fmt.Errorf("task %s: %s does not exist: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	if info, err := os.Stat(w.Path); err != nil || !info.IsDir() {
		return fmt.Errorf("task %s: %s is not a directory: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	rec, err := w.repo.readRecord(w.name)
	if err == nil && rec.Again && !w.partial {
		return fmt.Errorf("task %s: %s is being recreated: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	return nil
}

// vacant reports whether nothing exists at W's path.
func (w *Worktree) vacant() (bool, error) {
	if !file.Exists(w.Path) {
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

// orGone returns ErrNoWorktree instead of err if W has disappeared meanwhile.
func (w *Worktree) orGone(err error) error {
	if err == nil || errors.Is(err, ErrNoWorktree) {
		return err
	}
	if gone := w.here(); errors.Is(gone, ErrNoWorktree) {
		return errors.Join(gone, err)
	}
	return err
}
