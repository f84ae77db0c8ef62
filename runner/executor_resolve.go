package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// resolve runs an agent to resolve a conflict with the target, which is in the worktree as an unfinished
// merge. If the agent fails, the merge is undone, because no step can use a worktree with conflict markers.
func (x *Executor) resolve(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	merging, err := x.conflict(ctx, c.Path, b)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return event.Result{Error: refused.Reason, ErrorType: event.ErrorConflict}, nil
	}
	if err != nil {
		return event.Result{}, err
	}
	if merging.Target == "" {
		return event.Result{OK: true, Output: "the target moved again; the conflict is gone"}, nil
	}
	found := b
	found.Snapshot = merging.Snapshot // the agent starts with this state, also after an interruption
	report, err := x.report(ctx, c, found)
	if err != nil {
		return event.Result{}, err
	}
	result, err := x.outcome(c, report)
	if err == nil && result.Error == "" {
		result, err = x.commitMerge(ctx, c, b, result, merging)
	}
	if err == nil && result.Error != "" {
		err = x.unmerge(context.WithoutCancel(ctx), b.Snapshot)
	}
	return result, err
}

// commitMerge commits an agent's merge, unless the merge discards changes of the target.
func (x *Executor) commitMerge(ctx context.Context, c engine.Call, b leafStart, result event.Result, m event.Merging) (event.Result, error) {
	why, err := x.dropped(ctx, c.Path, b, m)
	if err != nil || why != "" {
		result.Error, result.ErrorType = why, event.ErrorCommit
		return result, err
	}
	return x.commit(ctx, c, b, result, m.Target)
}

// unmerge removes a conflicted merge from the worktree.
func (x *Executor) unmerge(ctx context.Context, before string) error {
	if err := x.Workspace.Restore(ctx, before); err != nil {
		return err
	}
	// There is nothing to commit, but this clears the conflict in the worktree's own git.
	_, err := x.Workspace.Commit(ctx, "Nothing", "")
	return err
}

// conflict writes the conflict to the worktree. For an interrupted step, it returns the merge recorded in
// the journal.
func (x *Executor) conflict(ctx context.Context, path string, b leafStart) (event.Merging, error) {
	for _, e := range x.Journal.At(path, event.MergeStarted) {
		if b.cutOff && e.Seq > b.since {
			return event.As[event.Merging](e), nil
		}
	}
	if b.cutOff {
		if err := x.Workspace.Restore(ctx, b.Snapshot); err != nil {
			return event.Merging{}, err
		}
	}
	m, err := x.Landing.Conflict(ctx)
	if err != nil || m.Target == "" {
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
	m.Snapshot, m.Tree = conflicted.Commit, tree
	return m, x.emit(event.MergeStarted, path, m)
}

// dropped describes the changes of the target that the merge would discard: files without a conflict that
// the agent reset to the version of the task's branch. For conflicts in which the agent kept only the
// task's side, it records a warning.
func (x *Executor) dropped(ctx context.Context, path string, b leafStart, m event.Merging) (why string, err error) {
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
		return "the agent discarded changes of the target in " + strings.Join(lost, ", "), nil
	}
	if len(won) > 0 {
		err = x.warn(path, "the agent kept only the task's side of the conflicts in "+strings.Join(won, ", "))
	}
	return "", err
}
