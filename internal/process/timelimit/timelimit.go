// Package timelimit measures the running time of a program, and acts when it is over.
package timelimit

import (
	"sync"
	"time"

	ourclock "github.com/coven-run/coven/internal/process/clock"
)

// Clock calls fire once after the running time limit. A nil clock never calls it.
type Clock struct {
	limit time.Duration
	fire  func() bool // false: not now, start again from zero

	mu    sync.Mutex
	used  time.Duration // running time before since
	since time.Time     // zero while the clock is stopped
	timer *time.Timer
	ended bool
}

// New returns a stopped clock, or nil without a limit.
func New(limit time.Duration, fire func() bool) *Clock {
	if limit <= 0 {
		return nil
	}
	return &Clock{limit: limit, fire: fire}
}

func (c *Clock) run() {
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

func (c *Clock) halt() {
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

// Touch restarts the clock from zero. It does not reset the timer, which checks the
// time when it expires, because Touch is called for every read.
func (c *Clock) Touch() {
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

func (c *Clock) end() {
	if c == nil {
		return
	}
	c.halt()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *Clock) expire() {
	if c.due() && !c.fire() {
		c.restart()
	}
}

// restart restarts from zero after a limit that did not apply.
func (c *Clock) restart() {
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
func (c *Clock) due() bool {
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

// Clocks are the clocks of one program, paused together.
type Clocks struct {
	timeout, idle *Clock

	mu    sync.Mutex
	holds int // 1 before the first Resume, so that nothing runs early
}

// Together returns clocks that run after the first Resume.
func Together(timeout, idle *Clock) *Clocks {
	return &Clocks{timeout: timeout, idle: idle, holds: 1}
}

// Pause stops the clocks until Resume. Pauses nest.
func (c *Clocks) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	c.timeout.halt()
	c.idle.halt()
}

// Resume undoes one Pause.
func (c *Clocks) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = max(c.holds-1, 0)
	if c.holds == 0 {
		c.timeout.run()
		c.idle.run()
	}
}

// End stops the clocks for good.
func (c *Clocks) End() {
	c.timeout.end()
	c.idle.end()
}

// Running reports which clocks run.
func (c *Clocks) Running() (timeout, idle bool) { return c.timeout.running(), c.idle.running() }

func (c *Clock) running() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}
