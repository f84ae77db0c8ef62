// Package integrate merges the target into a worktree, so that the checks see the tree that lands, and
// moves the worktree to the result. It can leave conflicts in the files for an agent to resolve.
package integrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Landing is a change that lands on its target. Merge creates it: checks run on Tree, and exactly Tree
// lands. Land sets New and records the landing in the Journal before anything moves. RecoverLanding needs
// only Task, Target.Ref, Old, New, Tree and Head.
type Landing struct {
	Task   string
	Target repo.Target
	Old    string // the target's tip before the landing, which Tip contains
	Tip    string // tip of the task's branch
	New    string // the target's tip after the landing, empty until it has landed
	Tree   string // the tree of Tip and New
	From   string // the branch's tree before Old was merged; only set by Merge and Stack
	Head   string // the target's final tip if other changes land on top of New at the same time, otherwise empty
	Below  string // the commit that it is stacked on; only set by Stack
	// Dropped names the commits that the target contained when the change started and no longer contains, newest first, with
	// their subjects. They do not land. Only Merge sets it.
	Dropped string
}

// head returns the target's tip after the whole move.
func (l Landing) head() string { return cmp.Or(l.Head, l.New) }

// Moved returns the landing for the move of the target and its checkouts, which may include other landings.
func (l Landing) Moved() Landing {
	l.New = l.head()
	return l
}

// A ConflictError lists the files that the branch and the target changed in conflicting ways.
type ConflictError struct {
	Target string
	Files  []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with %s in %s", e.Target, strings.Join(e.Files, ", "))
}

// An UnrelatedError means that the target and the task's branch no longer have a common commit, because the
// target's history was replaced.
type UnrelatedError struct{ Branch, Target string }

func (e *UnrelatedError) Error() string {
	return fmt.Sprintf("%s and %s have no common commit: the history of %s was replaced after the task started", e.Branch, e.Target, e.Target)
}

// A DirtyError means that the worktree contains uncommitted work.
type DirtyError struct {
	TaskID string
	Files  []string
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf("worktree of %s has uncommitted changes: %s", e.TaskID, strings.Join(e.Files, ", "))
}

// Merge merges the target's current tip into the task's branch and the worktree. If the merge does not
// change the branch's tree, no commit is created. If the error is a *ConflictError, nothing has changed.
// All work in the worktree must be committed (*DirtyError), the branch must have a common commit with the
// target (*UnrelatedError), and it must refer only to submodule commits that exist elsewhere
// (*GitlinkError).
func Merge(ctx context.Context, w *repo.Worktree, target repo.Target) (Landing, error) {
	l, err := w.Lock(ctx, "integrate")
	if err != nil {
		return Landing{}, err
	}
	defer l.Release()
	failpoint.Point("integrate.locked")
	if err := FinishInterrupted(ctx, w, l); err != nil {
		return Landing{}, err
	}
	candidate, err := integrate(ctx, w, target, l)
	if err != nil {
		return Landing{}, fmt.Errorf("integrate %s: %w", w.TaskID, w.OrMissing(err))
	}
	if err := gitlinksExist(ctx, w, candidate); err != nil {
		return Landing{}, fmt.Errorf("integrate %s: %w", w.TaskID, err)
	}
	failpoint.Point("integrate.return")
	return candidate, ForgetConflict(w)
}

func integrate(ctx context.Context, w *repo.Worktree, target repo.Target, l *lock.Lock) (Landing, error) {
	theirs, err := w.Repo.Git().Ref(ctx, target.Ref)
	if err != nil {
		return Landing{}, err
	}
	tip, ix, err := CheckClean(ctx, w, l)
	if err != nil {
		return Landing{}, err
	}
	defer ix.Drop()
	target.Tip = theirs
	candidate := Landing{Task: w.TaskID, Target: target, Old: theirs, Tip: tip.Oid, Tree: tip.Tree, From: tip.Tree}
	start, err := startOf(ctx, w, tip.Oid, target)
	if err != nil {
		return candidate, err
	}
	merged, err := merge(ctx, w, start, tip.Oid, theirs)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		conflict.Target = target.Branch
	}
	if err != nil || merged == tip.Tree && !start.Dropped {
		return candidate, err
	}
	failpoint.Point("integrate.merged")
	var commit, rebased string
	if start.Dropped {
		if candidate.Dropped, err = dropped(ctx, w, start.Commit, theirs); err != nil {
			return candidate, err
		}
		rebased = tip.Oid
		commit, err = rebase(ctx, w, start.Commit, tip.Oid, target, merged)
	} else {
		message := fmt.Sprintf("Merge branch '%s' into %s\n", target.Branch, w.Branch)
		commit, err = w.Repo.MakeCommit(ctx, merged, message, nil, tip.Oid, theirs)
	}
	if err == nil {
		err = w.RecordMerged(theirs, rebased)
	}
	if err != nil {
		return candidate, err
	}
	failpoint.Point("integrate.commit")
	candidate.Tip, candidate.Tree = commit, merged
	return candidate, advance(ctx, w, Move{Old: tip.Oid, New: commit}, ix, tip.Tree)
}

// startOf returns the start of the change. The branch and the target must have a common commit.
func startOf(ctx context.Context, w *repo.Worktree, tip string, target repo.Target) (repo.Start, error) {
	start, err := w.StartOf(ctx, tip, target.Tip)
	if errors.Is(err, git.ErrNoMergeBase) {
		return start, &UnrelatedError{Branch: w.Branch, Target: target.Branch}
	}
	return start, err
}

// CheckClean returns the branch's tip and an index of the worktree. It fails with a *DirtyError if the
// files differ from the tip.
func CheckClean(ctx context.Context, w *repo.Worktree, l *lock.Lock) (object.Commit, *content.Index, error) {
	oid, err := w.Tip(ctx)
	if err != nil {
		return object.Commit{}, nil, err
	}
	tip, err := w.Repo.Git().Commit(ctx, oid)
	if err != nil {
		return tip, nil, err
	}
	ix, staged, err := content.StageOn(ctx, w, oid, l)
	if err != nil || staged == tip.Tree {
		return tip, ix, err
	}
	ix.Drop()
	changes, err := w.Repo.Git().Changes(ctx, tip.Tree, staged)
	dirty := &DirtyError{TaskID: w.TaskID}
	for _, change := range changes {
		dirty.Files = append(dirty.Files, change.Path)
	}
	return tip, nil, errors.Join(err, dirty)
}

// MergeCommits merges two commits and returns the tree. It first replaces the reserved paths of ours with
// those of theirs, so that they cannot conflict.
func MergeCommits(ctx context.Context, w *repo.Worktree, ours, theirs string) (string, error) {
	start, err := w.StartOf(ctx, ours, theirs)
	if err != nil {
		return "", err
	}
	return merge(ctx, w, start, ours, theirs)
}

// merge is MergeCommits for a change with a known start.
func merge(ctx context.Context, w *repo.Worktree, start repo.Start, ours, theirs string) (string, error) {
	r := w.Repo
	tree, err := content.WithReserved(ctx, r, ours, theirs)
	if err != nil || start.Commit == theirs {
		return tree, err
	}
	prepared, err := r.MakeCommit(ctx, tree, "coven: merge side\n", nil, ours)
	if err != nil {
		return "", err
	}
	other, err := startingAt(ctx, w, start, theirs)
	if err != nil {
		return "", err
	}
	merged, err := MergeTree(ctx, w, prepared, other)
	if err != nil {
		return "", err
	}
	return content.WithReserved(ctx, r, merged, theirs)
}

// MergeTree merges two commits and returns the tree. Merge drivers run in the sandbox of w.
func MergeTree(ctx context.Context, w *repo.Worktree, ours, theirs string) (string, error) {
	fields, err := mergeTree(ctx, w, w.Repo.Git(), "--name-only", "--no-messages", ours, theirs)
	if git.ExitCode(err) == 1 && len(fields) > 0 {
		return "", &ConflictError{Files: fields[1:]}
	}
	if err != nil {
		return "", err
	}
	if len(fields) == 0 {
		return "", errors.New("git merge-tree printed no tree")
	}
	return fields[0], nil
}
