package land

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// RecoverLanding finishes or undoes a landing that was killed after its intent was recorded. It reports
// whether the landing took place. If it did not, every checkout is restored and the task can land again.
// RecoverLanding may be called repeatedly, and if there is nothing to recover.
//
// The git process of the killed coven may still be running. It holds the target's lock, so RecoverLanding
// waits for it.
func RecoverLanding(ctx context.Context, r *repo.Repo, intent integrate.Landing) (landed bool, err error) {
	target := repo.Target{Branch: strings.TrimPrefix(intent.Target.Ref, names.HeadsPrefix)}
	l, err := r.Lock(ctx, names.TargetLock(target.Branch), "recover the landing of "+intent.Task)
	if err != nil {
		return false, err
	}
	defer l.Release()
	failpoint.Point("recover.locked")
	landed, err = reached(ctx, r, intent)
	if err != nil {
		return false, fmt.Errorf("recover the landing of %s: %w", intent.Task, err)
	}
	// Checkouts move before the target. So if the target has moved, all of its checkouts have moved as well.
	err = clearLeft(ctx, r, intent.Target.Ref, intent.Task, l.File())
	failpoint.Point("recover.checkouts")
	err = errors.Join(err, CatchUp(ctx, r, intent.Target.Ref, l.File()))
	if err != nil {
		return landed, fmt.Errorf("recover the landing of %s: %w", intent.Task, fullDisk(r, err))
	}
	return landed, nil
}

// reached reports whether the target contains the commit of the landing.
func reached(ctx context.Context, r *repo.Repo, intent integrate.Landing) (bool, error) {
	tip, err := r.Git().Ref(ctx, intent.Target.Ref)
	if err != nil || tip == intent.New {
		return err == nil, err
	}
	if kept, err := r.Git().HasCommit(ctx, intent.New); err != nil || !kept {
		return false, err // its ref was deleted and git gc removed the commit
	}
	return r.Git().IsAncestor(ctx, intent.New, tip)
}
