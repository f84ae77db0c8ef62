package supply

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// IgnoredDirs returns the directories of the main checkout that git ignores, such as dependencies, as absolute paths:
// programs of tasks can read them. It omits those of coven and the tracker, and those that Python makes beside its
// sources.
func IgnoredDirs(ctx context.Context, r *repo.Repo) ([]string, error) {
	names, err := r.RootGit().Fields(ctx, "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, name := range names {
		dir, isDir := strings.CutSuffix(name, "/")
		if isDir && !isPrivate(dir) && !slices.Contains([]string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}, path.Base(dir)) {
			dirs = append(dirs, filepath.Join(r.Root, filepath.FromSlash(dir)))
		}
	}
	return dirs, nil
}

// UntrackedDirs returns those of the named directories of the main checkout in which git tracks no file, as absolute paths.
func UntrackedDirs(ctx context.Context, r *repo.Repo, names []string) ([]string, error) {
	var dirs []string
	for _, name := range names {
		tracked, err := r.RootGit().Fields(ctx, "ls-files", "-z", "--", name)
		if err != nil {
			return nil, err
		}
		if len(tracked) == 0 {
			dirs = append(dirs, filepath.Join(r.Root, filepath.FromSlash(name)))
		}
	}
	return dirs, nil
}
