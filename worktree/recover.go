package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/coven-run/coven/internal/crash"
	"github.com/coven-run/coven/worktree/internal/git"
)

// RecoverLanding ends a landing that was killed after its intent was written.
// It reports whether the landing took place; if not, every checkout is as it
// was before and the task can land again. It may be called any number of
// times, also when nothing was wrong.
//
// The killed coven's git may still be running. It holds the target's lock, so
// this waits for it.
func (r *Repo) RecoverLanding(ctx context.Context, intent Intent) (landed bool, err error) {
	target := Target{Branch: strings.TrimPrefix(intent.TargetRef, headsPrefix)}
	l, err := r.lock(ctx, targetLock(target), "recover the landing of "+intent.Task)
	if err != nil {
		return false, err
	}
	defer l.release()
	crash.Point("recover.locked")
	landed, err = r.reached(ctx, intent)
	if err != nil {
		return false, fmt.Errorf("recover the landing of %s: %w", intent.Task, err)
	}
	checkouts, err := r.checkoutsOf(ctx, intent.TargetRef, l.held())
	if err != nil {
		return landed, err
	}
	for _, c := range checkouts {
		// Checkouts move before the target, so a target that moved has all of
		// its checkouts where they belong.
		err = errors.Join(err, c.recover(ctx, intent, landed))
		crash.Point("recover.checkout.each")
	}
	if err != nil {
		return landed, fmt.Errorf("recover the landing of %s: %w", intent.Task, err)
	}
	return landed, nil
}

// reached reports whether the target has the intent's commit.
func (r *Repo) reached(ctx context.Context, intent Intent) (bool, error) {
	tip, err := r.git().Ref(ctx, intent.TargetRef)
	if err != nil || tip == intent.New {
		return err == nil, err
	}
	if kept, err := r.hasCommit(ctx, intent.New); err != nil || !kept {
		return false, err // an older coven kept no ref, and git gc took it
	}
	err = r.git().Run(ctx, "merge-base", "--is-ancestor", intent.New, tip)
	if git.ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// recover takes a checkout back that has moved, wholly or in part, without
// the target.
func (c checkout) recover(ctx context.Context, intent Intent, landed bool) error {
	if landed {
		return c.unmark()
	}
	var m mark
	err := readJSON(c.markPath(), &m)
	if err == nil {
		err = c.mend(ctx, m.From, m.To)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.awaitIndex(ctx); err != nil {
		return err
	}
	if kept, err := c.repo.hasCommit(ctx, intent.New); err != nil || !kept {
		return err // git gc took it, so no index had any of it
	}
	moved, err := c.holds(ctx, intent.Old, intent.New)
	if err != nil || !moved {
		return err
	}
	return c.putBack(ctx, c.git, intent)
}

// holds reports whether the index has all changes between two commits.
func (c checkout) holds(ctx context.Context, from, to string) (bool, error) {
	changes, err := c.git.Changes(ctx, from, to)
	if err != nil {
		return false, err
	}
	have, err := c.entries(ctx, c.git)
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

// putBack undoes follow, unless a commit that the person made meanwhile took
// the landing's changes along: then the checkout is right as it is.
func (c checkout) putBack(ctx context.Context, g git.Repo, intent Intent) error {
	tip, err := g.Ref(ctx, intent.TargetRef)
	if err != nil {
		return err
	}
	if tip != intent.Old {
		swallowed, err := swallows(ctx, g, tip, intent)
		if err != nil || swallowed {
			return err
		}
	}
	return c.follow(ctx, intent.New, intent.Old)
}

// swallows reports whether a commit has all that the intent changes.
func swallows(ctx context.Context, g git.Repo, tip string, intent Intent) (bool, error) {
	changes, err := g.Changes(ctx, intent.Old, intent.New)
	if err != nil {
		return false, err
	}
	differ, err := g.Changes(ctx, intent.New, tip)
	if err != nil {
		return false, err
	}
	open := map[string]bool{}
	for _, change := range differ {
		open[change.Path] = true
	}
	for _, change := range changes {
		if open[change.Path] {
			return false, nil
		}
	}
	return true, nil
}
