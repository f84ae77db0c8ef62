package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/process/clock"
)

const (
	// saveEvery is the shortest interval at which the worktree is saved on a timer.
	saveEvery = 5 * time.Second
	// saveShare limits the time spent on saving to one part in saveShare.
	saveShare = 50
	// saveTries is the number of consecutive failures after which saving counts as broken.
	saveTries = 3
)

// save saves the worktree on a timer. If saving keeps failing, it stops an agent whose calls do not
// pass the gate, because the next overwritten file would be lost.
func (r *run) save(ctx context.Context, done <-chan struct{}) {
	failed := 0
	for wait := saveEvery; ; {
		timer := clock.NewTimer(wait)
		select {
		case <-done:
			timer.Stop()
			return
		case <-r.stopping:
			timer.Stop()
			return
		case <-timer.C:
		}
		began := clock.Now()
		err := r.job.Save(ctx)
		wait = max(saveEvery, (saveShare-1)*clock.Since(began))
		if failed++; err == nil {
			failed = 0
		}
		if failed == saveTries && r.unsaved(fmt.Errorf("save the worktree: %w", err)) {
			return
		}
	}
}

// unsaved handles broken saving and reports whether the agent was stopped.
func (r *run) unsaved(err error) bool {
	if r.command.Gated { // a snapshot precedes each call
		r.warn("cannot %v", err)
		return false
	}
	r.storeErr = err
	r.child.Stop(err)
	return true
}
