package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// A Landing is a change that lands on its target. It is created by Integrate: checks
// run on Tree, and exactly Tree lands. Land sets New and records the landing in the
// Journal before anything moves. RecoverLanding needs only Task, Target.Ref, Old, New,
// Tree and Head.
type Landing struct {
	Task   string
	Target Target
	Old    string // the target's tip before; Tip contains it
	Tip    string // of the task's branch
	New    string // the target's tip after; empty: not landed yet
	Tree   string // of Tip and of New
	From   string // of the branch before Old was merged into it; set by Integrate and Stack only
	Head   string // where the target moves if other changes land above New with it; else empty
	Below  string // the commit that it is stacked on; set by Stack only
}

// head returns the target's tip after the landing.
func (l Landing) head() string { return cmp.Or(l.Head, l.New) }

// moved returns the move of the target and its checkouts, of which l may be a part.
func (l Landing) moved() Landing {
	l.New = l.head()
	return l
}

// Already reports whether the target already had the tree, so that nothing moved.
func (l Landing) Already() bool { return l.New == l.Old }

// A ConflictError names the files that the branch and its target changed
// differently.
type ConflictError struct {
	Target string
	Files  []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with %s in %s", e.Target, strings.Join(e.Files, ", "))
}

// An UnrelatedError means that the target and the task's branch no longer have a common
// commit because the target's history was replaced.
type UnrelatedError struct{ Branch, Target string }

func (e *UnrelatedError) Error() string {
	return fmt.Sprintf("%s and %s have no common commit: the history of %s was replaced after the task started", e.Branch, e.Target, e.Target)
}

// A DirtyError means that W contains uncommitted work.
type DirtyError struct {
	TaskID string
	Files  []string
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf("worktree of %s has uncommitted changes: %s", e.TaskID, strings.Join(e.Files, ", "))
}

// Integrate merges the target's current tip into the task's branch and into W. If the
// merge does not change the branch's tree, no commit is created. On a *ConflictError
// nothing has changed. W must be committed (*DirtyError), have a common commit with
// the target (*UnrelatedError), and refer only to submodule commits that exist
// elsewhere (*GitlinkError).
func (w *Worktree) Integrate(ctx context.Context, target Target) (Landing, error) {
	l, err := w.lock(ctx, "integrate")
	if err != nil {
		return Landing{}, err
	}
	defer l.Release()
	failpoint.Point("integrate.locked")
	if err := w.settle(ctx, l); err != nil {
		return Landing{}, err
	}
	candidate, err := w.integrate(ctx, target, l)
	if err != nil {
		return Landing{}, fmt.Errorf("integrate %s: %w", w.TaskID, w.orGone(err))
	}
	if err := w.gitlinksExist(ctx, candidate); err != nil {
		return Landing{}, fmt.Errorf("integrate %s: %w", w.TaskID, err)
	}
	failpoint.Point("integrate.return")
	return candidate, w.resolved()
}

func (w *Worktree) integrate(ctx context.Context, target Target, l *lock.Lock) (Landing, error) {
	theirs, err := w.repo.git().Ref(ctx, target.Ref)
	if err != nil {
		return Landing{}, err
	}
	tip, ix, err := w.clean(ctx, l)
	if err != nil {
		return Landing{}, err
	}
	defer ix.drop()
	target.Tip = theirs
	candidate := Landing{Task: w.TaskID, Target: target, Old: theirs, Tip: tip.Oid, Tree: tip.Tree, From: tip.Tree}
	if err := w.related(ctx, tip.Oid, target); err != nil {
		return candidate, err
	}
	merged, err := w.repo.merge(ctx, tip.Oid, theirs)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		conflict.Target = target.Branch
	}
	if err != nil || merged == tip.Tree {
		return candidate, err
	}
	failpoint.Point("integrate.merged")
	message := fmt.Sprintf("Merge branch '%s' into %s\n", target.Branch, w.Branch)
	commit, err := w.repo.makeCommit(ctx, merged, message, nil, tip.Oid, theirs)
	if err != nil {
		return candidate, err
	}
	failpoint.Point("integrate.commit")
	candidate.Tip, candidate.Tree = commit, merged
	return candidate, w.advance(ctx, move{Old: tip.Oid, New: commit}, ix, tip.Tree)
}

// related checks that a merge with the target has a base.
func (w *Worktree) related(ctx context.Context, tip string, target Target) error {
	_, err := w.repo.git().MergeBase(ctx, tip, target.Tip)
	if errors.Is(err, git.ErrNoMergeBase) {
		return &UnrelatedError{Branch: w.Branch, Target: target.Branch}
	}
	return err
}

// clean returns the branch's tip and an index of W, which must agree.
func (w *Worktree) clean(ctx context.Context, l *lock.Lock) (git.Commit, *index, error) {
	oid, err := w.Tip(ctx)
	if err != nil {
		return git.Commit{}, nil, err
	}
	tip, err := w.repo.git().Commit(ctx, oid)
	if err != nil {
		return tip, nil, err
	}
	ix, staged, err := w.stagedOn(ctx, oid, l)
	if err != nil || staged == tip.Tree {
		return tip, ix, err
	}
	ix.drop()
	changes, err := w.repo.git().Changes(ctx, tip.Tree, staged)
	dirty := &DirtyError{TaskID: w.TaskID}
	for _, change := range changes {
		dirty.Files = append(dirty.Files, change.Path)
	}
	return tip, nil, errors.Join(err, dirty)
}

// merge merges two commits and returns the tree. The reserved paths are taken from
// theirs beforehand, so that they cannot conflict.
func (r *Repo) merge(ctx context.Context, ours, theirs string) (string, error) {
	tree, err := r.withReserved(ctx, ours, theirs)
	if err != nil {
		return "", err
	}
	if contained, err := r.git().IsAncestor(ctx, theirs, ours); err != nil || contained {
		return tree, err
	}
	if merged, err := r.git().MergeApart(ctx, ours, theirs, tree); err == nil {
		return merged, nil
	}
	prepared, err := r.makeCommit(ctx, tree, "coven: merge side\n", nil, ours)
	if err != nil {
		return "", err
	}
	merged, err := r.mergeTree(ctx, prepared, theirs)
	if err != nil {
		return "", err
	}
	return r.withReserved(ctx, merged, theirs)
}

// mergeTree merges two commits with the help of their merge base.
func (r *Repo) mergeTree(ctx context.Context, ours, theirs string) (string, error) {
	fields, err := r.git().Fields(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
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
