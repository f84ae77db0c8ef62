package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// CollectEvery is how often coven collects garbage by itself.
const CollectEvery = 24 * time.Hour

// collectedPath is an empty file. The time of its last change is when coven last began to collect
// garbage by itself.
func collectedPath(r *repo.Repo) string { return r.StatePath("collected") }

// CollectionDue reports whether a day has passed since coven last collected garbage by itself. A
// repository that coven has just begun to use has none: its first collection is due in a day.
func CollectionDue(r *repo.Repo, now time.Time) bool {
	info, err := os.Lstat(collectedPath(r))
	if errors.Is(err, fs.ErrNotExist) {
		_ = noteCollection(r, now) // without the file, the next run tries again
		return false
	}
	return err == nil && now.Sub(info.ModTime()).Abs() >= CollectEvery
}

// BeginCollection reports whether the caller may collect the garbage of this day: only one process
// may, and it does not try again if it is killed.
func BeginCollection(ctx context.Context, r *repo.Repo, now time.Time) (bool, error) {
	wait, cancel := context.WithTimeoutCause(ctx, collectWait, ErrCollecting)
	defer cancel()
	l, err := r.Lock(wait, CollectLock, "gc")
	if err != nil {
		return false, err
	}
	defer l.Release()
	if !CollectionDue(r, now) {
		return false, nil
	}
	return true, noteCollection(r, now)
}

func noteCollection(r *repo.Repo, now time.Time) error {
	err := os.MkdirAll(r.StatePath(), 0o755)
	if err == nil {
		err = os.WriteFile(collectedPath(r), nil, 0o644)
	}
	if err == nil {
		err = os.Chtimes(collectedPath(r), time.Time{}, now)
	}
	if err != nil {
		return fmt.Errorf("note the collection of garbage: %w", err)
	}
	return nil
}
