package worktree

import (
	"context"

	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// PatchID returns the PatchID of the Diff that a candidate of Integrate is.
func PatchID(ctx context.Context, w *repo.Worktree, c Landing) (string, error) {
	fork, err := w.MergeBase(ctx, c.Old)
	if err != nil {
		return "", err
	}
	return diff.PatchID(ctx, w.Repo, fork, c.Tree)
}
