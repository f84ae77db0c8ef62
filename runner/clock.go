package runner

import (
	"context"
	"time"

	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

// Limited returns a context that ends with cause after limit: see workclock.Limit.
func Limited(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	return workclock.Limit(ctx, limit, cause)
}

// Pause stops the clocks of the step in ctx until resume is called: see workclock.Pause.
func Pause(ctx context.Context) (resume func()) { return workclock.Pause(ctx) }

// workClock returns the Clock of the engine, which measures working time without waits.
func workClock() engine.Clock {
	return engine.Clock{Limit: workclock.Limit, Measure: workclock.Measure, Charge: workclock.Charge}
}
