package runner

import (
	"context"
	"sync"
	"time"

	ourclock "github.com/coven-run/coven/internal/clock"
)

// clock is the time that a step has left. It stands still while the step waits
// for something that is not its own fault.
type clock struct {
	outer *clock
	end   func()

	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when it was started last; zero: it stands still
	timer  *time.Timer
	paused int
}

type clockKey struct{}

// withClock returns a context that ends with cause when limit is over, the time
// left out in which it was paused.
func withClock(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	outer, _ := ctx.Value(clockKey{}).(*clock)
	c := &clock{outer: outer, left: limit, end: func() { cancel(cause) }}
	c.start()
	return context.WithValue(ctx, clockKey{}, c), func() { c.stop(); cancel(nil) }
}

// Pause stops the clocks of a context's step, and of the steps and the run
// around it, until resume is called.
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

// stop and start may nest: the clock goes when each stop has met its start.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused > 1 || !c.timer.Stop() {
		return
	}
	c.left -= ourclock.Since(c.since)
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
	c.since, c.timer = ourclock.Now(), ourclock.AfterFunc(max(c.left, 0), c.end)
}
