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

// RefDisk is what refs of one kind take: how many there are, and the size of the objects that no
// branch, tag or remote branch has. It is an estimate: git stores objects as differences to
// others.
type RefDisk struct {
	Refs  int
	Bytes int64
}

// SnapshotDisk returns what the snapshots of all sessions take.
func SnapshotDisk(ctx context.Context, r *repo.Repo) (RefDisk, error) {
	return refDisk(ctx, r, names.SnapshotsPrefix)
}

// RescueDisk returns what the rescues of all tasks take, except for objects that snapshots have,
// too.
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

// Disk returns the directories of a worktree: its files, and its git directory if git has one.
func Disk(r *repo.Repo, info Info) []string {
	dirs := []string{info.Path}
	if admin := adminOf(r, info.Path); admin != "" {
		dirs = append(dirs, admin)
	}
	return dirs
}

// PoolDisk returns the entries of the pool: files of landed worktrees, and ignored ones.
func PoolDisk(r *repo.Repo) (paths []string) {
	for _, name := range pool.Dirs(r) {
		paths = append(paths, pool.Path(r, name))
	}
	return paths
}

// OtherDisk returns what is next to the worktrees: remains of removed ones.
func OtherDisk(r *repo.Repo) ([]string, error) {
	dir := filepath.Join(r.Root, names.WorktreesDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		switch name := entry.Name(); {
		case strings.HasPrefix(name, ".") && name != pool.DirName:
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// RecordDisk returns the directory of coven's own files in the git directory.
func RecordDisk(r *repo.Repo) string { return r.StatePath() }
