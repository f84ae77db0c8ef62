package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
)

// Errors of Land that the caller can handle.
var (
	// ErrTargetMoved means that the target has changed since the candidate was
	// integrated: integrate, check and land again.
	ErrTargetMoved = errors.New("target has moved")
	// ErrBranchMoved means that the task's branch has changed since the candidate was
	// created.
	ErrBranchMoved = errors.New("branch of the task has moved")
	// ErrClaimLost means that another run has claimed the task.
	ErrClaimLost = errors.New("claim of the task was lost")
	// ErrCannotRebase means that replaying the commits one by one does not result in
	// the checked tree.
	ErrCannotRebase = errors.New("rebasing does not result in the checked tree: use strategy squash or merge")
)

// A Strategy determines how a branch becomes part of its target.
type Strategy string

// The strategies.
const (
	Squash Strategy = "squash" // one commit; the default
	Merge  Strategy = "merge"  // one merge commit above the branch
	Rebase Strategy = "rebase" // the branch's commits, replayed
)

// A Journal records a landing that is about to move its target. When Intent returns,
// the record must be durable.
type Journal interface {
	Intent(intent Landing) error
}

// A LandRequest describes a landing.
type LandRequest struct {
	Landing  Landing
	Strategy Strategy // empty: Squash
	Message  string   // of the commit; not used by Rebase
	ClaimOid string   // the claim under which the task ran
	Journal  Journal
	Hooks    HookRunner // nil: the repository's hooks are not run
}

// Land makes the candidate the target's tip. It moves the target together with every
// checkout of it, or changes nothing. There is one landing per target at a time.
//
// Errors that change nothing: ErrTargetMoved, ErrBranchMoved, ErrClaimLost, ErrCannotRebase,
// ErrNoWorktree if W does not exist, *HookError if a hook of the repository refuses, *SignError
// if the commit cannot be signed, *CheckoutError if a user's checkout cannot follow, and
// *BusyError if another git process holds a lock.
func (w *Worktree) Land(ctx context.Context, req LandRequest) (Landing, error) {
	if req.ClaimOid == "" || req.Journal == nil {
		return Landing{}, fmt.Errorf("land %s: a landing needs a claim and a journal", w.TaskID)
	}
	if err := w.here(); err != nil {
		return Landing{}, fmt.Errorf("land %s on %s: %w", w.TaskID, req.Landing.Target.Branch, err)
	}
	l, err := w.repo.lock(ctx, targetLock(req.Landing.Target), "land "+w.TaskID)
	if err != nil {
		return Landing{}, err
	}
	defer l.release()
	failpoint.Point("land.locked")
	lander := &landing{w: w, req: req, git: w.repo.git()}
	lander.git.Hold = l.held()
	landed, err := lander.run(ctx)
	if err != nil {
		err = w.repo.fullDisk(err)
		return Landing{}, fmt.Errorf("land %s on %s: %w", w.TaskID, req.Landing.Target.Branch, err)
	}
	failpoint.Point("land.return")
	return landed, nil
}

// A landing is one Land that holds the target's lock.
type landing struct {
	w   *Worktree
	req LandRequest
	git git.Repo
}

func (l *landing) run(ctx context.Context) (Landing, error) {
	c := l.req.Landing
	done := c
	done.Task, done.New = l.w.TaskID, c.Old
	if err := l.check(ctx); err != nil {
		return done, err
	}
	tip, err := l.git.Commit(ctx, c.Old)
	if err != nil {
		return done, err
	}
	if tip.Tree == c.Tree {
		return done, nil
	}
	if err := l.unobstructed(ctx); err != nil {
		return done, err
	}
	failpoint.Point("land.merged")
	if done.New, err = l.commit(ctx); err != nil {
		return done, err
	}
	failpoint.Point("land.commit")
	if err := l.w.keep(ctx, keepLanding, done.New); err != nil {
		return done, err
	}
	failpoint.Point("land.kept")
	hook := refHook{landing: l, intent: done}
	if err := hook.prepared(ctx); err != nil {
		return done, err
	}
	err = l.moveRecorded(context.WithoutCancel(ctx), done)
	hook.ended(ctx, err)
	return done, err
}

// moveRecorded moves the target after the intent is on disk.
func (l *landing) moveRecorded(ctx context.Context, intent Landing) error {
	if err := l.req.Journal.Intent(intent); err != nil {
		return fmt.Errorf("record the landing: %w", err)
	}
	failpoint.Point("land.intent")
	return l.move(ctx, intent)
}

// check verifies that the candidate is unchanged and does not touch reserved paths.
func (l *landing) check(ctx context.Context) error {
	c := l.req.Landing
	if err := l.stillThere(ctx); err != nil {
		return err
	}
	branch, err := l.w.Tip(ctx)
	if err != nil {
		return err
	}
	if branch != c.Tip {
		return ErrBranchMoved
	}
	tree, err := l.w.repo.withReserved(ctx, c.Tree, c.Old)
	if err == nil && tree != c.Tree {
		err = errors.New("the candidate changes .beads or .coven/sessions: integrate it again")
	}
	return err
}

// stillThere checks the conditions that the ref transaction verifies again.
func (l *landing) stillThere(ctx context.Context) error {
	c := l.req.Landing
	tip, err := l.git.Ref(ctx, c.Target.Ref)
	if err != nil {
		return err
	}
	if tip != c.Old {
		return ErrTargetMoved
	}
	claim, err := l.git.Ref(ctx, claimRef(l.w.TaskID))
	if errors.Is(err, git.ErrNoRef) || err == nil && claim != l.req.ClaimOid {
		return ErrClaimLost
	}
	return err
}

// unobstructed checks, before anything is recorded, that no other process works on the
// target or in a checkout of it.
func (l *landing) unobstructed(ctx context.Context) error {
	ref := l.req.Landing.Target.Ref
	checkouts, err := l.w.repo.checkoutsOf(ctx, ref, l.git.Hold)
	if err != nil {
		return err
	}
	for _, c := range checkouts {
		if err := c.clearLeft(ctx); err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	return awaitGone(ctx, filepath.Join(l.w.repo.GitDir, ref+".lock"))
}

// move moves the checkouts, then the target if the claim is still valid.
func (l *landing) move(ctx context.Context, intent Landing) error {
	failpoint.Point("land.checkout.before")
	moved, err := l.moveCheckouts(ctx, intent)
	if err != nil {
		return errors.Join(err, l.moveBack(ctx, moved, intent))
	}
	failpoint.Point("land.checkout.after")
	failpoint.Point("land.ref.before")
	err = l.w.repo.transact(ctx, l.git, "coven: land "+l.w.name,
		git.Move(intent.Target.Ref, intent.New, intent.Old),
		git.Verify(claimRef(l.w.TaskID), l.req.ClaimOid))
	if err != nil {
		if cause := l.stillThere(ctx); cause != nil {
			err = cause
		}
		return errors.Join(err, l.moveBack(ctx, moved, intent))
	}
	failpoint.Point("land.ref.after")
	return settleAll(ctx, moved)
}

func (l *landing) moveCheckouts(ctx context.Context, intent Landing) ([]userCheckout, error) {
	checkouts, err := l.w.repo.checkoutsOf(ctx, intent.Target.Ref, l.git.Hold)
	if err != nil {
		return nil, err
	}
	var moved []userCheckout
	for _, c := range checkouts {
		c.task = intent.Task
		if err := c.follow(ctx, intent.Old, intent.New); err != nil {
			return moved, err
		}
		moved = append(moved, c)
		failpoint.Point("land.checkout.each")
	}
	return moved, nil
}

func settleAll(ctx context.Context, moved []userCheckout) error {
	var failed error
	for _, c := range moved {
		failed = errors.Join(failed, c.settle(ctx))
	}
	return failed
}

func (l *landing) moveBack(ctx context.Context, moved []userCheckout, intent Landing) error {
	var failed error
	for _, c := range moved {
		if err := c.putBack(ctx, l.git, intent); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
