package event

import (
	"fmt"
	"sync"
	"time"
)

// Observer is told about the subagents of a session. What it returns is for a log: nothing that
// an observer does changes the session.
type Observer interface {
	OnSpawn(e Event, s SpawnStart) error  // a subagent starts: its process does not exist yet
	OnComplete(e Event, s SpawnEnd) error // it has reported
	OnError(e Event, s SpawnEnd) error    // it failed, or was stopped: s.Error says why
}

// Observe tells an observer about an event, if it is the start or the end of a subagent. A panic of
// the observer is an error.
func Observe(o Observer, e Event) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	switch e.Type {
	case SpawnStarted:
		return o.OnSpawn(e, As[SpawnStart](e))
	case SpawnEnded:
		end := As[SpawnEnd](e)
		if end.Error != nil {
			return o.OnError(e, end)
		}
		return o.OnComplete(e, end)
	}
	return nil
}

// observerTime limits how long a session waits for an observer at its end.
const observerTime = 5 * time.Second

// Observe tells an observer about the subagents of the journal from now on, in a goroutine of its own:
// it may be slow. failed is called there with its errors. stop returns when it was told everything,
// or after some seconds.
func (j *Journal) Observe(o Observer, failed func(error)) (stop func()) {
	q := &queue{}
	q.wake = sync.NewCond(&q.mu)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, more := q.next(); more; e, more = q.next() {
			if err := Observe(o, e); err != nil {
				failed(err)
			}
		}
	}()
	j.Watch(q.put)
	return func() {
		q.close()
		select {
		case <-done:
		case <-time.After(observerTime):
		}
	}
}

// queue has events for an observer.
type queue struct {
	mu     sync.Mutex
	wake   *sync.Cond
	events []Event
	closed bool
}

// put adds an event. It does not block.
func (q *queue) put(e Event) {
	if e.Type != SpawnStarted && e.Type != SpawnEnded {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events = append(q.events, e)
		q.wake.Signal()
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// next waits for an event. more is false after the last one.
func (q *queue) next() (e Event, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) == 0 {
		if q.closed {
			return Event{}, false
		}
		q.wake.Wait()
	}
	e, q.events = q.events[0], q.events[1:]
	return e, true
}
