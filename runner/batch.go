package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/coven-run/coven/runner/engine"
)

// Batch contains the sessions of this process that wait for their turn to land on the same target. The
// session that has the turn can check its change together with those of others, and land them in one move.
type Batch struct {
	Max int // maximum number of changes to check together; at most 1 means that each is checked alone

	mu      sync.Mutex
	waiters []*waiter // in order of arrival
}

// Batches contains the Batch of each target. The zero value is empty.
type Batches struct{ on sync.Map } // *Batch by target

// On returns the Batch of a target. A new Batch checks at most limit changes together.
func (b *Batches) On(target string, limit int) *Batch {
	found, _ := b.on.LoadOrStore(target, &Batch{Max: limit})
	return found.(*Batch)
}

// A waiter is a waiting session. Until it leaves, its goroutine runs functions for other sessions (do), and
// is blocked while they act for several sessions at once (holding).
type waiter struct {
	x     *Executor
	c     engine.Call
	calls chan func()
	left  chan struct{} // closed when the session no longer waits
	ctx   context.Context

	alone  bool           // its change failed together with others; guarded by Batch.mu
	landed *landedOutcome // only accessed by its own goroutine
}

// join adds a session to the batch.
func (b *Batch) join(ctx context.Context, x *Executor, c engine.Call) *waiter {
	s := &waiter{x: x, c: c, ctx: ctx, calls: make(chan func()), left: make(chan struct{})}
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waiters = append(b.waiters, s)
	}
	return s
}

// leave removes a session from the batch.
func (b *Batch) leave(s *waiter) {
	close(s.left)
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waiters = slices.DeleteFunc(b.waiters, func(other *waiter) bool { return other == s })
	}
}

// others returns the waiting sessions whose changes may be checked together with others.
func (b *Batch) others() []*waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.waiters), func(s *waiter) bool { return s.alone })
}

// requireOwnTurn makes a session wait for its own turn and land alone.
func (b *Batch) requireOwnTurn(s *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.alone = true
}

func (b *Batch) isAlone(s *waiter) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.alone
}

// do runs work in the goroutine of the session. It returns false if the session no longer waits.
func (s *waiter) do(work func()) bool {
	done := make(chan struct{})
	select {
	case s.calls <- func() { defer close(done); work() }:
		<-done
		return true
	case <-s.left:
		return false
	}
}

// whilePresent runs work while none of the sessions can leave. If one has left, it returns false without running
// work.
func whilePresent(waiters []*waiter, work func()) bool {
	if len(waiters) == 0 {
		work()
		return true
	}
	held := false
	return waiters[0].do(func() { held = whilePresent(waiters[1:], work) }) && held
}
