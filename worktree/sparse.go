package worktree

import (
	"context"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// A sparse W has the files of a cone only. The indexes of coven have all entries of the branch,
// as W's own index has: those of files that are not in W have git's skip-worktree bit and count as
// unchanged. git never decides which these are, with core.sparseCheckout it would remove files
// outside of the cone that the task has made. Instead, coven takes such entries out of an index
// before git moves W, and puts those of the new tree back.

// keepOutside records that files outside of the cone count as merged, though W does not have them.
func keepOutside(ctx context.Context, w *repo.Worktree, c Conflicted, tree string) error {
	if w.Cone == nil {
		return nil
	}
	commit, err := w.Repo.MakeCommit(ctx, tree, "coven: conflicted merge\n", nil, c.TargetTip)
	if err != nil {
		return err
	}
	if err := w.Keep(ctx, repo.KeepMerged, commit); err != nil {
		return err
	}
	return sparse.WriteOutside(w, sparse.Outside{Tip: c.BranchTip, Tree: commit})
}
