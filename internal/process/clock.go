package process

import (
	"sync"
	"time"

	ourclock "github.com/coven-run/coven/internal/process/clock"
)

// clock calls fire once after the running time limit. A nil clock never calls it.
type clock struct {
	limit time.Duration
	fire  func() bool // false: not now, start again from zero

	mu    sync.Mutex
	used  time.Duration // running time before since
	since time.Time     // zero while the clock is stopped
	timer *time.Timer
	ended bool
}

// newClock returns a stopped clock, or nil without a limit.
func newClock(limit time.Duration, fire func() bool) *clock {
	if limit <= 0 {
		return nil
	}
	return &clock{limit: limit, fire: fire}
}

func (c *clock) run() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.since.IsZero() {
		return
	}
	c.since = ourclock.Now()
	c.timer = ourclock.AfterFunc(c.limit-c.used, c.expire)
}

func (c *clock) halt() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return
	}
	c.timer.Stop()
	c.used += ourclock.Since(c.since)
	c.since = time.Time{}
}

// touch restarts the clock from zero. It does not reset the timer, which checks the
// time when it expires, because touch is called for every read.
func (c *clock) touch() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = 0
	if !c.since.IsZero() {
		c.since = ourclock.Now()
	}
}

func (c *clock) end() {
	if c == nil {
		return
	}
	c.halt()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *clock) expire() {
	if c.due() && !c.fire() {
		c.restart()
	}
}

// restart restarts from zero after a limit that did not apply.
func (c *clock) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = 0
	if c.ended || c.since.IsZero() {
		return
	}
	c.since = ourclock.Now()
	c.timer.Reset(ourclock.ToReal(c.limit))
}

// due reports whether the limit is reached, and restarts the timer if it is not.
func (c *clock) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.since.IsZero() {
		return false
	}
	left := c.limit - c.used - ourclock.Since(c.since)
	if left > 0 {
		c.timer.Reset(ourclock.ToReal(left))
	}
	return left <= 0
}

// clocks are the clocks of one child, paused together.
type clocks struct {
	timeout, idle *clock

	mu    sync.Mutex
	holds int // 1 before begin, so that nothing runs early
}

func newClocks(timeout, idle *clock) *clocks {
	return &clocks{timeout: timeout, idle: idle, holds: 1}
}

func (c *clocks) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	c.timeout.halt()
	c.idle.halt()
}

func (c *clocks) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = max(c.holds-1, 0)
	if c.holds == 0 {
		c.timeout.run()
		c.idle.run()
	}
}

func (c *clocks) end() {
	c.timeout.end()
	c.idle.end()
}
