package commit

import (
	"context"
	"slices"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Except records the globs of new paths that are committed although they look like dependencies, build output or links out
// of the repository, and the paths that are never committed because they show directories of the main checkout.
func Except(w *repo.Worktree, allow, links []string) error {
	e, err := content.ReadExceptions(w)
	if err != nil || slices.Equal(e.Allow, allow) && slices.Equal(e.Links, links) {
		return err
	}
	e.Allow, e.Links = allow, links
	return content.WriteExceptions(w, e)
}

// IsAllowed reports whether one of the globs of Allow matches a path or a directory above it.
func IsAllowed(globs []string, path string) bool { return content.IsAllowed(globs, path) }

// ExcludeUntracked leaves all present untracked paths of a worktree out of its commits. It returns them. An untracked
// directory stands for the files in it.
func ExcludeUntracked(ctx context.Context, w *repo.Worktree) ([]string, error) {
	return content.ExcludeUntracked(ctx, w)
}
