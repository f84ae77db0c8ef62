package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// A Start is the commit from which the change of a task starts.
type Start struct {
	Commit string
	// Dropped means that the target contained the commit once, and no longer does: its history was rewritten. The change
	// is the difference to the commit all the same, and the dropped commits are no part of it.
	Dropped bool
}

// StartOf returns the start of the change between two commits: one of the task's branch, and one of the target.
func (w *Worktree) StartOf(ctx context.Context, tip, target string) (Start, error) {
	s, err := w.startOf(ctx, tip, target)
	if err != nil {
		err = fmt.Errorf("find the start of %s: %w", w.Branch, err)
	}
	return s, err
}

func (w *Worktree) startOf(ctx context.Context, tip, target string) (Start, error) {
	g := w.Repo.Git()
	rec, err := w.Repo.ReadRecord(w.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Start{}, err
	}
	for _, merged := range slices.Backward(rec.Merged) {
		if in, err := g.IsAncestor(ctx, merged, tip); err != nil {
			return Start{}, err
		} else if !in { // coven was killed before the merge, or an older snapshot was restored
			continue
		}
		if kept, err := g.IsAncestor(ctx, merged, target); err != nil || !kept {
			return Start{Commit: merged, Dropped: true}, err
		}
		break
	}
	base, err := g.MergeBase(ctx, tip, target)
	return Start{Commit: base}, err
}

// Start returns the start of the change between the task's branch and a commit of the target.
func (w *Worktree) Start(ctx context.Context, target string) (Start, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return Start{}, err
	}
	other, err := w.Repo.Git().Commit(ctx, target)
	if err != nil {
		return Start{}, fmt.Errorf("find the start of %s: %w", w.Branch, err)
	}
	return w.StartOf(ctx, tip, other.Oid)
}

// RecordMerged records, before the task's branch moves, that a commit of the target is merged into it. rebased is the tip of the
// branch if it is rebased on that commit, otherwise "".
func (w *Worktree) RecordMerged(target, rebased string) error {
	rec, err := w.Repo.ReadRecord(w.Name)
	if err != nil {
		return err
	}
	if rebased != "" {
		rec.Rebased = append(rec.Rebased, rebased)
	}
	rec.Merged = append(slices.DeleteFunc(rec.Merged, func(oid string) bool { return oid == target }), target)
	return w.Repo.WriteRecord(w.Name, rec)
}

// StartedAt records the commit of the target from which the change starts, unless one is recorded.
func (w *Worktree) StartedAt(target string) error {
	rec, err := w.Repo.ReadRecord(w.Name)
	if err != nil || len(rec.Merged) > 0 {
		return err
	}
	return w.RecordMerged(target, "")
}
