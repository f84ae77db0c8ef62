package scratch

import (
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Start is the state of a branch when a step of a session began.
type Start struct {
	Snapshot snapshot.Snapshot
	Base     string // the last commit of the target that the branch contained
}

// StartOf returns the state in a snapshot, given as its commit. target is a later commit of the target, or the commit that the branch
// started from. If the snapshot no longer exists, the error is a snapshot.ErrNone.
func StartOf(ctx context.Context, r *repo.Repo, commit, target string) (s Start, err error) {
	if s.Snapshot, err = snapshot.StateAt(ctx, r, commit); err != nil {
		return s, err
	}
	s.Base, err = r.Git().MergeBase(ctx, s.Snapshot.Tip, target)
	if errors.Is(err, git.ErrNoMergeBase) {
		s.Base, err = target, nil
	}
	return s, err
}

// Commit returns a commit in a scratch repository with the files of a snapshot, on the branch's tip at that time. If git may convert
// files, it is that tip: a snapshot has files as programs see them. They differ from the tip only if a commit was refused.
func Commit(ctx context.Context, r *repo.Repo, s snapshot.Snapshot) (string, error) {
	tip, err := r.Git().Commit(ctx, s.Tip)
	if err != nil || tip.Tree == s.Tree {
		return s.Tip, err
	}
	if converts, err := content.MayConvert(ctx, r, tip.Tree); err != nil || converts {
		return s.Tip, err
	}
	made, err := r.MakeCommit(ctx, s.Tree, "Uncommitted changes\n", nil, s.Tip)
	if err != nil {
		return "", fmt.Errorf("store the start of a step: %w", err)
	}
	return made, nil
}
