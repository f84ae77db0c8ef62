// Package terminal is what a person sees while tasks run: a view of their events.
//
// Rules. Nothing here holds up a run: what is to be shown queues until the
// terminal takes it. What agents and tasks say cannot steer the terminal. One
// goroutine writes; a question has the terminal for itself.
package terminal

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Screen shows what happens in any task at work, as lines, and below that on a
// terminal one live line for each.
type Screen struct {
	out  io.Writer
	draw func(event.Event) string // the lines of an event, or ""
	live *Live                    // nil where there is no terminal

	mu     sync.Mutex
	queue  []shown
	closed bool
	wake   *sync.Cond
	done   chan struct{}
}

// shown is one thing to show: an event, a text, or a question.
type shown struct {
	event event.Event
	text  string
	alone func()
}

// New shows events with draw on out.
func New(out io.Writer, draw func(event.Event) string, live *Live) *Screen {
	s := &Screen{out: out, draw: draw, live: live, done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.show()
	return s
}

// See takes an event. It does not block.
func (s *Screen) See(e event.Event) { s.put(shown{event: e}) }

// Say takes lines that belong to no event. It does not block.
func (s *Screen) Say(text string) { s.put(shown{text: text}) }

// Alone runs do when everything before it is shown, while nothing else is: a
// question to a person. It returns when do has, or, if the screen is not free
// before ctx ends, without do.
func (s *Screen) Alone(ctx context.Context, do func()) error {
	over := make(chan struct{})
	var begin sync.Once // by the screen, or by who gives up
	s.put(shown{alone: func() { begin.Do(func() { defer close(over); do() }) }})
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	gaveUp := false
	begin.Do(func() { gaveUp = true }) // waits for a running do, which sees ctx as well
	if gaveUp {
		return context.Cause(ctx)
	}
	return nil
}

// Later runs do between two lines, and does not wait for it: something to say that
// goes elsewhere.
func (s *Screen) Later(do func()) { s.put(shown{alone: do}) }

func (s *Screen) put(one shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, one)
	s.wake.Signal()
}

// flushTime bounds how long coven waits at its end for a screen that does not
// take what it is given.
const flushTime = 5 * time.Second

// Close returns when everything is shown, or the screen does not take it.
func (s *Screen) Close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Signal()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-time.After(flushTime):
	}
}

func (s *Screen) show() {
	defer close(s.done)
	for {
		batch, more := s.next()
		for _, one := range batch {
			s.one(one)
		}
		if !more {
			if s.live != nil {
				s.live.end()
			}
			return
		}
	}
}

func (s *Screen) one(it shown) {
	if it.alone != nil {
		if s.live != nil {
			s.live.hide()
			defer s.live.unhide()
		}
		it.alone()
		return
	}
	text := it.text
	if it.event.Type != "" {
		text = s.draw(it.event)
	}
	if s.live != nil {
		s.live.print(text, it.event)
		return
	}
	_, _ = io.WriteString(s.out, text) // a closed pipe stops no run
}

func (s *Screen) next() (batch []shown, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.wake.Wait()
	}
	batch, s.queue = s.queue, nil
	return batch, len(batch) > 0 || !s.closed
}
