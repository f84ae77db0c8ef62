package commit

import (
	"context"
	"slices"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Allow records the globs of new paths that are committed although they look like dependencies, build output or links out
// of the repository.
func Allow(w *repo.Worktree, globs []string) error {
	e, err := content.ReadExceptions(w)
	if err != nil || slices.Equal(e.Allow, globs) {
		return err
	}
	e.Allow = globs
	return content.WriteExceptions(w, e)
}

// IsAllowed reports whether one of the globs of Allow matches a path or a directory above it.
func IsAllowed(globs []string, path string) bool { return content.IsAllowed(globs, path) }

// ExcludeUntracked leaves all present untracked paths of a worktree out of its commits. It returns them, without what is in
// untracked directories.
func ExcludeUntracked(ctx context.Context, w *repo.Worktree) ([]string, error) {
	return content.ExcludeUntracked(ctx, w)
}
