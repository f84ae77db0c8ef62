package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// CollectEvery is the interval of automatic garbage collection.
const CollectEvery = 24 * time.Hour

// PackEvery is the shortest time between two times that objects are packed because there are many.
const PackEvery = time.Minute

// collectedPath returns the path of an empty file whose modification time is the start of the last
// automatic garbage collection.
func collectedPath(r *repo.Repo) string { return r.StatePath("collected") }

// packedPath is collectedPath for Pack.
func packedPath(r *repo.Repo) string { return r.StatePath("packed") }

// CollectionDue reports whether a day has passed since the last automatic garbage collection began. In a
// repository that coven has just started to use, the first collection is due in a day.
func CollectionDue(r *repo.Repo, now time.Time) bool {
	info, err := os.Lstat(collectedPath(r))
	if errors.Is(err, fs.ErrNotExist) {
		_ = note(collectedPath(r), now) // if that fails, the next run tries again
		return false
	}
	return err == nil && now.Sub(info.ModTime()).Abs() >= CollectEvery
}

// BeginCollection reports whether the caller may run the garbage collection of this day. Only one process
// may, and a killed collection is not repeated that day.
func BeginCollection(ctx context.Context, r *repo.Repo, now time.Time) (bool, error) {
	l, err := lockCollection(ctx, r)
	if err != nil {
		return false, err
	}
	defer l.Release()
	if !CollectionDue(r, now) {
		return false, nil
	}
	return true, note(collectedPath(r), now)
}

// note sets the modification time of an empty file.
func note(path string, at time.Time) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = regularfile.Replace(path, nil, 0o644)
	}
	if err == nil {
		err = os.Chtimes(path, time.Time{}, at)
	}
	if err != nil {
		return fmt.Errorf("note the collection of garbage: %w", err)
	}
	return nil
}

// Numbers of loose objects and packs above which objects are packed. git itself would wait for 50 packs, with which a fetch takes twice as long as with few.
const (
	manyLoose = 6700 // gc.auto
	manyPacks = 20
)

// sampled is the first byte of those loose objects by which git estimates the number of all.
const sampled = 0x17

// PackDue reports whether there are so many loose objects or packs that each command takes longer, and Pack has not just run.
func PackDue(r *repo.Repo, now time.Time) bool {
	packs, _ := filepath.Glob(filepath.Join(r.GitDir, "objects", "pack", "*.pack")) // the pattern is right
	if loose(r, sampled) <= manyLoose/256 && (len(packs) <= manyPacks || !isWhole(r)) {
		return false
	}
	info, err := os.Lstat(packedPath(r))
	return err != nil || now.Sub(info.ModTime()).Abs() >= PackEvery
}

// Pack packs the objects and the refs of the repository, if that is due. It deletes none, so that tasks may run.
func Pack(ctx context.Context, r *repo.Repo, now time.Time) error {
	l, err := lockCollection(ctx, r)
	if err != nil {
		return err
	}
	defer l.Release()
	if !PackDue(r, now) {
		return nil
	}
	if err := note(packedPath(r), now); err != nil {
		return err
	}
	g := r.Git()
	g.Hold = l.File()
	return pack(ctx, r, g)
}
