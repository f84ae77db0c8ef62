package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// collectEvery is how often coven collects garbage by itself.
const collectEvery = 24 * time.Hour

// collectedPath is an empty file. The time of its last change is when coven last began to collect
// garbage by itself.
func (r *Repo) collectedPath() string { return r.ours("collected") }

// CollectionDue reports whether a day has passed since coven last collected garbage by itself. A
// repository that coven has just begun to use has none: its first collection is due in a day.
func (r *Repo) CollectionDue(now time.Time) bool {
	info, err := os.Lstat(r.collectedPath())
	if errors.Is(err, fs.ErrNotExist) {
		_ = r.noteCollection(now) // without the file, the next run tries again
		return false
	}
	return err == nil && now.Sub(info.ModTime()).Abs() >= collectEvery
}

// BeginCollection reports whether the caller may collect the garbage of this day: only one process
// may, and it does not try again if it is killed.
func (r *Repo) BeginCollection(ctx context.Context, now time.Time) (bool, error) {
	wait, cancel := context.WithTimeoutCause(ctx, collectWait, ErrCollecting)
	defer cancel()
	l, err := r.lock(wait, collectLock, "gc")
	if err != nil {
		return false, err
	}
	defer l.Release()
	if !r.CollectionDue(now) {
		return false, nil
	}
	return true, r.noteCollection(now)
}

func (r *Repo) noteCollection(now time.Time) error {
	err := os.MkdirAll(r.ours(), 0o755)
	if err == nil {
		err = os.WriteFile(r.collectedPath(), nil, 0o644)
	}
	if err == nil {
		err = os.Chtimes(r.collectedPath(), time.Time{}, now)
	}
	if err != nil {
		return fmt.Errorf("note the collection of garbage: %w", err)
	}
	return nil
}
