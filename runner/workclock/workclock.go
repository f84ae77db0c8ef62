// Package workclock measures the working time of steps: the time without the waits for something outside a step. A
// context carries the clocks of a step, and of the steps and the run around it.
package workclock

import (
	"context"
	"sync"
	"time"

	ourclock "github.com/coven-run/coven/internal/process/clock"
)

// clock measures the remaining working time of a step. It is paused while the step waits for something
// outside it.
type clock struct {
	outer *clock
	end   func() // called when the time is up; nil for a clock that only measures

	mu     sync.Mutex
	left   time.Duration
	worked time.Duration
	since  time.Time // last start
	timer  *time.Timer
	paused int
}

type clockKey struct{}

// Limit returns a context that ends with cause after limit. The time while its step is paused does not
// count.
func Limit(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, c := started(ctx, &clock{left: limit, end: func() { cancel(cause) }})
	return ctx, func() { c.stop(); cancel(nil) }
}

// Measure returns a context that measures its working time.
func Measure(ctx context.Context) (_ context.Context, worked func() time.Duration) {
	ctx, c := started(ctx, &clock{})
	return ctx, func() time.Duration {
		c.stop()
		return c.worked
	}
}

func started(ctx context.Context, c *clock) (context.Context, *clock) {
	c.outer, _ = ctx.Value(clockKey{}).(*clock)
	c.start()
	return context.WithValue(ctx, clockKey{}, c), c
}

// Pause stops the clocks of the step in ctx, and of the steps and the run around it, until resume is
// called.
func Pause(ctx context.Context) (resume func()) {
	inner, _ := ctx.Value(clockKey{}).(*clock)
	for c := inner; c != nil; c = c.outer {
		c.stop()
	}
	return sync.OnceFunc(func() {
		for c := inner; c != nil; c = c.outer {
			c.start()
		}
	})
}

// Remaining returns the shortest remaining time of the clocks of a context, or 0 if there is no limit.
func Remaining(ctx context.Context) (least time.Duration) {
	inner, _ := ctx.Value(clockKey{}).(*clock)
	for c := inner; c != nil; c = c.outer {
		c.mu.Lock()
		if c.end != nil && (least == 0 || c.left < least) {
			least = c.left
		}
		c.mu.Unlock()
	}
	return least
}

// Charge subtracts the working time of an earlier process from the clocks of a context.
func Charge(ctx context.Context, worked time.Duration) {
	inner, _ := ctx.Value(clockKey{}).(*clock)
	for c := inner; c != nil && worked > 0; c = c.outer {
		c.stop()
		c.mu.Lock()
		c.left -= worked
		c.mu.Unlock()
		c.start()
	}
}

// stop stops the clock. Calls may nest: the clock runs again after as many calls of start.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused > 1 {
		return
	}
	passed := ourclock.Since(c.since)
	c.worked, c.left = c.worked+passed, c.left-passed
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused > 0 {
		c.paused--
	}
	if c.paused > 0 {
		return
	}
	c.since = ourclock.Now()
	switch {
	case c.end == nil:
	case c.left <= 0:
		c.end()
	default:
		c.timer = ourclock.AfterFunc(c.left, c.end)
	}
}
