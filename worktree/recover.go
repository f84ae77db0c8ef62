package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
)

// RecoverLanding finishes or undoes a landing that was killed after its intent was
// recorded. It reports whether the landing took place; if not, every checkout is
// restored and the task can land again. It may be called repeatedly, also if nothing
// is to be recovered.
//
// The killed coven's git may still be running. It holds the target's lock, so
// this waits for it.
func (r *Repo) RecoverLanding(ctx context.Context, intent Landing) (landed bool, err error) {
	target := Target{Branch: strings.TrimPrefix(intent.Target.Ref, headsPrefix)}
	l, err := r.lock(ctx, targetLock(target), "recover the landing of "+intent.Task)
	if err != nil {
		return false, err
	}
	defer l.release()
	failpoint.Point("recover.locked")
	landed, err = r.reached(ctx, intent)
	if err != nil {
		return false, fmt.Errorf("recover the landing of %s: %w", intent.Task, err)
	}
	checkouts, err := r.checkoutsOf(ctx, intent.Target.Ref, l.held())
	if err != nil {
		return landed, err
	}
	for _, c := range checkouts {
		c.task = intent.Task
		// Checkouts move before the target, so if the target has moved, so have all its
		// checkouts.
		err = errors.Join(err, c.recover(ctx, intent.moved(), landed))
		failpoint.Point("recover.checkout.each")
	}
	if err != nil {
		return landed, fmt.Errorf("recover the landing of %s: %w", intent.Task, r.fullDisk(err))
	}
	return landed, nil
}

// reached reports whether the target has the intent's commit.
func (r *Repo) reached(ctx context.Context, intent Landing) (bool, error) {
	tip, err := r.git().Ref(ctx, intent.Target.Ref)
	if err != nil || tip == intent.New {
		return err == nil, err
	}
	if kept, err := r.hasCommit(ctx, intent.New); err != nil || !kept {
		return false, err // an older version kept no ref, and git gc removed the commit
	}
	return r.git().IsAncestor(ctx, intent.New, tip)
}

// recover moves back a checkout that has moved, completely or partially, without the
// target.
func (c *userCheckout) recover(ctx context.Context, intent Landing, landed bool) error {
	if err := c.clearLeft(ctx); err != nil || landed {
		return err
	}
	// After this, a version that let git write the files has left no other trace.
	if err := c.awaitIndex(ctx); err != nil {
		return err
	}
	if kept, err := c.repo.hasCommit(ctx, intent.New); err != nil || !kept {
		return err // git gc removed the commit, so no index contained any of it
	}
	moved, err := c.holds(ctx, intent.Old, intent.New)
	if err != nil || !moved {
		return err
	}
	swallowed, err := swallows(ctx, c.git, intent)
	if err != nil || swallowed {
		return err
	}
	if err := c.follow(ctx, intent.New, intent.Old); err != nil {
		return err
	}
	return c.settle(ctx)
}

// holds reports whether the index contains all changes between two commits.
func (c userCheckout) holds(ctx context.Context, from, to string) (bool, error) {
	changes, err := c.git.Changes(ctx, from, to)
	if err != nil {
		return false, err
	}
	have, err := c.entries(ctx)
	if err != nil {
		return false, err
	}
	for _, change := range changes {
		if have[change.Path] != wanted(change) {
			return false, nil
		}
	}
	return len(changes) > 0, nil
}
