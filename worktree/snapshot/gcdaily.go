package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// CollectEvery is the interval of automatic garbage collection.
const CollectEvery = 24 * time.Hour

// collectedPath returns the path of an empty file whose modification time is the start of the last
// automatic garbage collection.
func collectedPath(r *repo.Repo) string { return r.StatePath("collected") }

// CollectionDue reports whether a day has passed since the last automatic garbage collection began. In a
// repository that coven has just started to use, the first collection is due in a day.
func CollectionDue(r *repo.Repo, now time.Time) bool {
	info, err := os.Lstat(collectedPath(r))
	if errors.Is(err, fs.ErrNotExist) {
		_ = noteCollection(r, now) // if that fails, the next run tries again
		return false
	}
	return err == nil && now.Sub(info.ModTime()).Abs() >= CollectEvery
}

// BeginCollection reports whether the caller may run the garbage collection of this day. Only one process
// may, and a killed collection is not repeated that day.
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
		err = regularfile.Replace(collectedPath(r), nil, 0o644)
	}
	if err == nil {
		err = os.Chtimes(collectedPath(r), time.Time{}, now)
	}
	if err != nil {
		return fmt.Errorf("note the collection of garbage: %w", err)
	}
	return nil
}
