package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/pool"
)

// RefDisk is the number and disk use of refs of one kind. The size counts the objects that no branch, tag
// or remote-tracking branch reaches. It is an estimate, because git stores objects as deltas against other
// objects.
type RefDisk struct {
	Refs  int
	Bytes int64
}

// SnapshotDisk returns the disk use of the snapshots of all sessions.
func SnapshotDisk(ctx context.Context, r *repo.Repo) (RefDisk, error) {
	return refDisk(ctx, r, names.SnapshotsPrefix)
}

// RescueDisk returns the disk use of the rescues of all tasks, without the objects that snapshots also
// contain.
func RescueDisk(ctx context.Context, r *repo.Repo) (RefDisk, error) {
	return refDisk(ctx, r, names.RescuesPrefix, names.SnapshotsPrefix)
}

func refDisk(ctx context.Context, r *repo.Repo, prefix string, except ...string) (RefDisk, error) {
	refs, err := r.Git().Refs(ctx, prefix)
	if err != nil || len(refs) == 0 {
		return RefDisk{}, err
	}
	args := []string{"rev-list", "--objects", "--disk-usage", "--glob=" + prefix + "*", "--not", "--branches", "--tags", "--remotes"}
	for _, other := range except {
		args = append(args, "--glob="+strings.TrimSuffix(other, "/"))
	}
	out, err := r.Git().Line(ctx, args...)
	if err != nil {
		return RefDisk{Refs: len(refs)}, fmt.Errorf("measure %s: %w", strings.TrimSuffix(prefix, "/"), err)
	}
	bytes, err := strconv.ParseInt(out, 10, 64)
	return RefDisk{Refs: len(refs), Bytes: bytes}, err
}

// Disk returns the directories of a worktree: its files and, if it is registered, its git directory.
func Disk(r *repo.Repo, info Info) []string {
	dirs := []string{info.Path}
	if admin := adminOf(r, info.Path); admin != "" {
		dirs = append(dirs, admin)
	}
	return dirs
}

// PoolDisk returns the directories of the pool's entries.
func PoolDisk(r *repo.Repo) (paths []string) {
	for _, name := range pool.Dirs(r) {
		paths = append(paths, pool.Path(r, name))
	}
	return paths
}

// OtherDisk returns the remains of removed worktrees, which are in coven's directories of worktrees.
func OtherDisk(r *repo.Repo) (paths []string, err error) {
	for _, dir := range r.WorktreeDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list worktrees: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != pool.Path(r) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// RecordDisk returns the directory of coven's own files in the git directory.
func RecordDisk(r *repo.Repo) string { return r.StatePath() }
