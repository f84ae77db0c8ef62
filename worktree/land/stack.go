package land

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Stack merges the task's branch with the candidate of another task, as if that candidate had landed.
// Neither the branch nor the worktree changes. The commit New of the returned candidate also contains the
// files of all candidates below. It only serves for running checks and stacking further candidates:
// LandStack creates the commits that land. Patch IDs compare with Below.
//
// The errors are those of integrate.Merge, except *UnrelatedError. If a submodule changes, the error is a
// *GitlinkError, because only the task's own worktree contains the submodule's files.
func Stack(ctx context.Context, w *repo.Worktree, below integrate.Landing) (integrate.Landing, error) {
	l, err := w.Lock(ctx, "stack")
	if err != nil {
		return integrate.Landing{}, err
	}
	defer l.Release()
	if err := integrate.FinishInterrupted(ctx, w, l); err != nil {
		return integrate.Landing{}, err
	}
	tip, ix, err := integrate.CheckClean(ctx, w, l)
	if err != nil {
		return integrate.Landing{}, fmt.Errorf("stack %s: %w", w.TaskID, w.OrMissing(err))
	}
	ix.Drop()
	c, err := stack(ctx, w, tip, below)
	if err != nil {
		return integrate.Landing{}, fmt.Errorf("stack %s: %w", w.TaskID, err)
	}
	return c, nil
}

func stack(ctx context.Context, w *repo.Worktree, tip object.Commit, below integrate.Landing) (integrate.Landing, error) {
	base, err := stackBase(ctx, w.Repo, below)
	if err != nil {
		return integrate.Landing{}, err
	}
	c := integrate.Landing{Task: w.TaskID, Target: below.Target, Old: below.Old, Tip: tip.Oid, From: tip.Tree, Below: base}
	if c.Tree, err = integrate.MergeCommits(ctx, w, tip.Oid, base); err != nil {
		return c, err
	}
	changes, err := w.Repo.Git().Changes(ctx, base, c.Tree)
	if err != nil {
		return c, err
	}
	for _, change := range changes {
		if change.Mode == object.ModeSubmodule {
			return c, &integrate.GitlinkError{Path: change.Path, Commit: change.Oid}
		}
	}
	c.New, err = w.Repo.MakeCommit(ctx, c.Tree, "coven: stack\n", nil, base)
	return c, err
}

// stackBase returns a commit with the files of a candidate, for stacking others on it.
func stackBase(ctx context.Context, r *repo.Repo, c integrate.Landing) (string, error) {
	if c.New != "" {
		return c.New, nil
	}
	return r.MakeCommit(ctx, c.Tree, "coven: stack\n", nil, c.Old)
}

// StackPatchID returns the PatchID of the change that a stacked candidate adds to the candidates below.
func StackPatchID(ctx context.Context, w *repo.Worktree, c integrate.Landing) (string, error) {
	return diff.PatchID(ctx, w.Repo, c.Below, c.Tree)
}
