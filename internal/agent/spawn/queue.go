package spawn

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Queue runs the subagents of a session in first-in, first-out order, concurrently within its limits.
// Its zero value runs one at a time.
type Queue struct {
	// MaxConcurrent limits the running subagents; 0 means 1.
	MaxConcurrent int
	// Accounts limits the running subagents of each account. Other accounts are limited only by
	// MaxConcurrent.
	Accounts map[string]int

	mu      sync.Mutex
	waiting []*place // in order
	running []*place // ordered by start
	last    *place   // the most recently queued one
}

// place is one subagent's place in the queue.
type place struct {
	account  string
	label    string
	turn     chan struct{} // closed when it may start
	returned chan struct{} // closed when its result and all earlier results were returned
	started  bool          // Item.Started was called
	outside  int           // number of subagents that it waits for; it does not count as running then
}

// State is the state of a queue.
type State struct {
	Depth   int    // number of waiting subagents
	Current string // label of the first running one, or ""
}

// PanicError is the error of an item that panicked.
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
	// Queued and Started receive the state when the item is queued and when it starts. They
	// must not call the queue. If one of them fails, the item does not run.
	Queued, Started func(State) error
	Work            func(context.Context) error
}

// Do runs an item in its turn. It returns the item's error after the results of all earlier items
// were returned. If ctx ends while the item waits, Do returns the cause, and the
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
		<-before.returned // cannot block forever: the earlier item ends or times out
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
	p.started = true // in the same critical section
	return p, before, item.Started(q.state())
}

// await waits until a place may start.
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

// leave removes a waiting or running place from the queue. The parent counts as running
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

// advance starts the places whose turn has come. A place whose account has reached its limit does not block
// places of other accounts. The caller holds mu.
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

// count returns the number of running places of an account, or of all accounts if account is empty.
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
