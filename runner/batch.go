package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/coven-run/coven/runner/engine"
)

// Batch is the sessions of this process that wait for their turn to land on one target. Who has
// the turn can have the changes of others checked together with its own, and land them in one
// move.
type Batch struct {
	Max int // changes that are checked together; at most 1: each alone

	mu    sync.Mutex
	seats []*seat // in the order in which they came
}

// Batches has the Batch of each target. The zero value has none yet.
type Batches struct{ on sync.Map } // *Batch by target

// On returns the Batch of a target, which checks at most limit changes together.
func (b *Batches) On(target string, limit int) *Batch {
	found, _ := b.on.LoadOrStore(target, &Batch{Max: limit})
	return found.(*Batch)
}

// A seat is a session that waits. Until it leaves, its goroutine does what others ask it to (do),
// or stands still while they act for several sessions at once (holding).
type seat struct {
	x     *Executor
	c     engine.Call
	calls chan func()
	left  chan struct{} // closed when the session waits no more
	ctx   context.Context

	alone  bool           // its change was not good together with others; guarded by Batch.mu
	landed *landedOutcome // written and read by its own goroutine
}

// join begins the wait of a session.
func (b *Batch) join(ctx context.Context, x *Executor, c engine.Call) *seat {
	s := &seat{x: x, c: c, ctx: ctx, calls: make(chan func()), left: make(chan struct{})}
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seats = append(b.seats, s)
	}
	return s
}

// leave ends it.
func (b *Batch) leave(s *seat) {
	close(s.left)
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seats = slices.DeleteFunc(b.seats, func(other *seat) bool { return other == s })
	}
}

// others returns the sessions that wait and may be checked together with another.
func (b *Batch) others() []*seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.seats), func(s *seat) bool { return s.alone })
}

// setAlone has a session wait for its own turn, and use that alone.
func (b *Batch) setAlone(s *seat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.alone = true
}

func (b *Batch) isAlone(s *seat) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.alone
}

// do runs work in the goroutine of the session. It reports false if the session waits no more.
func (s *seat) do(work func()) bool {
	done := make(chan struct{})
	select {
	case s.calls <- func() { defer close(done); work() }:
		<-done
		return true
	case <-s.left:
		return false
	}
}

// holding runs work while no session of seats can leave. It reports false, and does not run
// work, if one has left.
func holding(seats []*seat, work func()) bool {
	if len(seats) == 0 {
		work()
		return true
	}
	held := false
	return seats[0].do(func() { held = holding(seats[1:], work) }) && held
}
