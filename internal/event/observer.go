package event

import (
	"fmt"
	"sync"
	"time"
)

// Observer receives the starts and ends of a session's subagents. Its errors are only logged, and
// cannot affect the session.
type Observer interface {
	OnSpawn(e Event, s SpawnStart) error  // a subagent starts; its process does not exist yet
	OnComplete(e Event, s SpawnEnd) error // the subagent has reported
	OnError(e Event, s SpawnEnd) error    // the subagent failed or was stopped; see s.Error
}

// Observe passes an event to an observer if it is the start or end of a subagent. It returns a panic of
// the observer as an error.
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

// Observe passes the journal's new events to an observer. It runs in a separate goroutine,
// because an observer may be slow, and passes errors to failed. stop waits until the observer has received
// all events, but only for a few seconds.
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

// queue is a queue of events for an observer.
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

// next waits for an event. more is false after the queue was closed and emptied.
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
