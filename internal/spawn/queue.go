package spawn

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Queue runs the subagents of a session: first in, first out, as many at once as its limits
// allow. Its zero value runs one at a time.
type Queue struct {
	// MaxConcurrent is how many run at once; 0 means 1.
	MaxConcurrent int
	// Accounts limits how many of an account run at once. An account without a limit has none
	// but MaxConcurrent.
	Accounts map[string]int

	mu      sync.Mutex
	waiting []*place // in order
	running []*place // in the order of their start
	last    *place   // the last one that was queued
}

// place is one subagent's place in the queue.
type place struct {
	account  string
	label    string
	turn     chan struct{} // closed when it may start
	returned chan struct{} // closed when its result was returned, and those before it
	started  bool          // Item.Started was called
	outside  int           // subagents that it waits for itself: it does not count as running
}

// State describes a queue.
type State struct {
	Depth   int    // that wait
	Current string // the label of the one that runs, the first of several; empty: none
}

// PanicError is the error of work that panicked.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

type placeKey struct{}

// Item is one subagent to run.
type Item struct {
	Account string
	Label   string // for State.Current
	// Queued and Started are told the state when the item has its place and when it starts. They
	// must not call the queue. After an error, the item does not run.
	Queued, Started func(State) error
	Work            func(context.Context) error
}

// Do runs an item when its turn has come, and returns its error when the results of all that were
// queued before were returned. If ctx ends while it waits, Do returns the cause of that and the
// item does not run.
func (q *Queue) Do(ctx context.Context, item Item) error {
	parent, _ := ctx.Value(placeKey{}).(*place)
	p, before, err := q.enter(item, parent)
	defer close(p.returned)
	if err == nil {
		err = q.await(ctx, p, item.Started)
	}
	if err == nil {
		err = Safely(func() error { return item.Work(context.WithValue(ctx, placeKey{}, p)) })
	}
	q.leave(p, parent)
	if before != nil && before != parent {
		<-before.returned // it ends by itself: it has a place, or runs with a time limit
	}
	return err
}

func (q *Queue) enter(item Item, parent *place) (p, before *place, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p = &place{account: item.Account, label: item.Label, turn: make(chan struct{}), returned: make(chan struct{})}
	if parent != nil {
		parent.outside++
	} else {
		before, q.last = q.last, p
	}
	q.waiting = append(q.waiting, p)
	q.advance()
	if err := item.Queued(q.state()); err != nil || !slices.Contains(q.running, p) {
		return p, before, err
	}
	p.started = true // nothing comes between
	return p, before, item.Started(q.state())
}

// await waits for the turn of a place.
func (q *Queue) await(ctx context.Context, p *place, started func(State) error) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.started {
		return nil
	}
	return started(q.state())
}

// leave takes a place out of the queue, whether it runs or waits. The one that waited for it counts
// again before others start.
func (q *Queue) leave(p, parent *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if parent != nil {
		parent.outside--
	}
	for _, list := range []*[]*place{&q.waiting, &q.running} {
		if i := slices.Index(*list, p); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
	q.advance()
}

// advance starts those whose turn has come; mu is held. One whose account is full lets later
// ones of other accounts pass.
func (q *Queue) advance() {
	for i := 0; i < len(q.waiting); {
		p := q.waiting[i]
		if q.count("") >= max(q.MaxConcurrent, 1) {
			return
		}
		if most, limited := q.Accounts[p.account]; limited && q.count(p.account) >= max(most, 1) {
			i++
			continue
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.running = append(q.running, p)
		close(p.turn)
	}
}

// count returns how many run, of one account or, if that is empty, of all.
func (q *Queue) count(account string) int {
	n := 0
	for _, p := range q.running {
		if p.outside == 0 && (account == "" || p.account == account) {
			n++
		}
	}
	return n
}

func (q *Queue) state() State {
	s := State{Depth: len(q.waiting)}
	if len(q.running) > 0 {
		s.Current = q.running[0].label
	}
	return s
}

// Safely turns a panic into a *PanicError.
func Safely(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: string(debug.Stack())}
		}
	}()
	return work()
}
