package worktree

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/git"
)

// Stack merges the task's branch onto the candidate of another task, as if that one had landed.
// Neither the branch nor W changes. The commit New of the candidate that it returns has the
// files of all candidates below, too, and only serves to check them and to stack further ones:
// LandStack creates the commits that land. Patch ids compare with Below.
//
// The errors are those of Integrate, but for *UnrelatedError. A change of a submodule is a
// *GitlinkError: only the task's own W has the submodule's files.
func (w *Worktree) Stack(ctx context.Context, below Landing) (Landing, error) {
	l, err := w.lock(ctx, "stack")
	if err != nil {
		return Landing{}, err
	}
	defer l.Release()
	if err := w.settle(ctx, l); err != nil {
		return Landing{}, err
	}
	tip, ix, err := w.clean(ctx, l)
	if err != nil {
		return Landing{}, fmt.Errorf("stack %s: %w", w.TaskID, w.orGone(err))
	}
	ix.drop()
	c, err := w.stack(ctx, tip, below)
	if err != nil {
		return Landing{}, fmt.Errorf("stack %s: %w", w.TaskID, err)
	}
	return c, nil
}

func (w *Worktree) stack(ctx context.Context, tip git.Commit, below Landing) (Landing, error) {
	base, err := w.repo.stackBase(ctx, below)
	if err != nil {
		return Landing{}, err
	}
	c := Landing{Task: w.TaskID, Target: below.Target, Old: below.Old, Tip: tip.Oid, From: tip.Tree, Below: base}
	if c.Tree, err = w.repo.merge(ctx, tip.Oid, base); err != nil {
		return c, err
	}
	changes, err := w.repo.git().Changes(ctx, base, c.Tree)
	if err != nil {
		return c, err
	}
	for _, change := range changes {
		if change.Mode == git.ModeSubmodule {
			return c, &GitlinkError{Path: change.Path, Commit: change.Oid}
		}
	}
	c.New, err = w.repo.makeCommit(ctx, c.Tree, "coven: stack\n", nil, base)
	return c, err
}

// stackBase returns a commit with the files of a candidate on which others are stacked.
func (r *Repo) stackBase(ctx context.Context, c Landing) (string, error) {
	if c.New != "" {
		return c.New, nil
	}
	return r.makeCommit(ctx, c.Tree, "coven: stack\n", nil, c.Old)
}

// StackPatchID returns the PatchID of the change that a stacked candidate adds to those below.
func (w *Worktree) StackPatchID(ctx context.Context, c Landing) (string, error) {
	return w.repo.patchID(ctx, c.Below, c.Tree)
}
