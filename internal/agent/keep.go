package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/clock"
)

// keepEvery is how often the worktree of an agent is stored whose calls coven does
// not see before they run.
const keepEvery = 30 * time.Second

// keep stores the worktree on a timer. An agent whose work cannot be stored is
// stopped: what it overwrites next would be lost.
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
				r.unkept = fmt.Errorf("store the worktree: %w", err)
				r.child.Stop(r.unkept)
				return
			}
		}
	}
}
