package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/clock"
)

// keepEvery is the interval at which coven stores the worktree of an agent whose calls
// do not pass the gate.
const keepEvery = 30 * time.Second

// keep stores the worktree on a timer. It stops the agent if that fails, because the
// next file that the agent overwrites would be lost.
func (r *run) keep(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(clock.World(keepEvery))
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-r.stopping:
			return
		case <-ticker.C:
			if err := r.job.Ungated(ctx); err != nil {
				r.storeErr = fmt.Errorf("store the worktree: %w", err)
				r.child.Stop(r.storeErr)
				return
			}
		}
	}
}
