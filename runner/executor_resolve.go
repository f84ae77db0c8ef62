package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// resolved has an agent resolve a conflict with the target, which is in the worktree
// as an unfinished merge. If the agent fails, the merge is undone, because nothing
// can build on a worktree with conflict markers.
func (x *Executor) resolved(ctx context.Context, c engine.Call, b beginning) (event.Result, error) {
	merging, err := x.conflict(ctx, c.Path, b)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return event.Result{Error: refused.Reason, ErrorType: event.ErrorConflict}, nil
	}
	if err != nil {
		return event.Result{}, err
	}
	if merging.Target == "" {
		return event.Result{OK: true, Output: "the target has moved again: there is no conflict any more"}, nil
	}
	found := b
	found.Snapshot = merging.Snapshot // where the agent starts, and starts again
	report, err := x.report(ctx, c, found)
	if err != nil {
		return event.Result{}, err
	}
	result, err := x.outcome(c, report)
	if err == nil && result.Error == "" {
		result, err = x.merged(ctx, c, b, result, merging)
	}
	if err == nil && result.Error != "" {
		err = x.unmerge(context.WithoutCancel(ctx), b.Snapshot)
	}
	return result, err
}

// merged commits the merge of an agent, unless it undoes changes of the target.
func (x *Executor) merged(ctx context.Context, c engine.Call, b beginning, result event.Result, m event.Merging) (event.Result, error) {
	why, err := x.dropped(ctx, c.Path, b, m)
	if err != nil || why != "" {
		result.Error, result.ErrorType = why, event.ErrorCommit
		return result, err
	}
	return x.committed(ctx, c, b, result, m.Target)
}

// unmerge takes a conflict out of the worktree.
func (x *Executor) unmerge(ctx context.Context, before string) error {
	if err := x.Workspace.Restore(ctx, before); err != nil {
		return err
	}
	// There is nothing to commit, but the worktree's own git forgets the conflict.
	_, err := x.Workspace.Commit(ctx, "Nothing", "")
	return err
}

// conflict puts the conflict into the worktree. For an interrupted step the journal
// has the commit of the target that is being merged.
func (x *Executor) conflict(ctx context.Context, path string, b beginning) (event.Merging, error) {
	var m event.Merging
	for _, e := range x.Journal.at(path, event.MergeStarted) {
		if b.cutOff && e.Seq > b.since {
			return m, e.Decode(&m)
		}
	}
	if b.cutOff {
		if err := x.Workspace.Restore(ctx, b.Snapshot); err != nil {
			return m, err
		}
	}
	target, files, err := x.Landing.Conflict(ctx)
	if err != nil || target == "" {
		return m, err
	}
	conflicted, err := x.Workspace.Snapshot(ctx, "conflict to resolve")
	if err != nil {
		return m, err
	}
	tree, err := x.Workspace.Tree(ctx)
	if err != nil {
		return m, err
	}
	m = event.Merging{Target: target, Snapshot: conflicted.Commit, Tree: tree, Files: files}
	return m, x.emit(event.MergeStarted, path, m)
}

// dropped describes what the merge would undo of other people's work: files without
// a conflict that the agent reset to the version of the task's branch. A conflict
// in which it took the task's side as a whole is a warning.
func (x *Executor) dropped(ctx context.Context, path string, b beginning, m event.Merging) (why string, err error) {
	now, err := x.Workspace.Tree(ctx)
	if err != nil {
		return "", err
	}
	touched, err := x.Workspace.Changed(ctx, m.Tree, now)
	if err != nil {
		return "", err
	}
	differs, err := x.Workspace.Changed(ctx, b.Tree, now)
	if err != nil {
		return "", err
	}
	var lost, won []string
	for _, file := range touched {
		switch {
		case slices.Contains(differs, file):
		case slices.Contains(m.Files, file):
			won = append(won, file)
		default:
			lost = append(lost, file)
		}
	}
	if len(lost) > 0 {
		return "it dropped what the target had changed in " + strings.Join(lost, ", "), nil
	}
	if len(won) > 0 {
		err = x.warn(path, "the agent took the task's side as a whole in "+strings.Join(won, ", "))
	}
	return "", err
}
