// Package terminal shows running tasks on a terminal, as a view of their events.
//
// Output never blocks a run: it is queued until the terminal accepts it. Text
// of agents and tasks cannot control the terminal. Only one question is open at a time; it
// appears below the live lines, which remain visible. The terminal reports single keys only while a
// question is open.
package terminal

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Screen shows the events of all running tasks as lines and, on a terminal, a live
// line for each task below them.
type Screen struct {
	out  io.Writer
	draw func(event.Event) string // formats an event; may return ""
	live *Live                    // nil without a terminal

	mu     sync.Mutex
	queue  []shown
	closed bool
	wake   *sync.Cond
	done   chan struct{}
	asking chan struct{} // full while a question is open
	yield  func()        // withdraws the open question, which is asked again later; nil if it must be answered
}

// shown is a queued item: an event, a text, or a function.
type shown struct {
	event event.Event
	text  string
	alone func()
}

// New returns a screen that shows events on out, formatted by draw.
func New(out io.Writer, draw func(event.Event) string, live *Live) *Screen {
	s := &Screen{out: out, draw: draw, live: live, done: make(chan struct{}), asking: make(chan struct{}, 1)}
	s.wake = sync.NewCond(&s.mu)
	go s.show()
	return s
}

// See shows an event. It does not block.
func (s *Screen) See(e event.Event) { s.put(shown{event: e}) }

// Name gives the live line of a task its title.
func (s *Screen) Name(task, title string) {
	if s.live != nil {
		s.live.name(task, title)
	}
}

// Say shows lines without an event. It does not block.
func (s *Screen) Say(text string) { s.put(shown{text: text}) }

// Alone runs do, such as a question in line mode or another program, after all earlier output
// is shown, and holds back later output. It returns when do has returned, or without calling
// do if ctx ends first.
func (s *Screen) Alone(ctx context.Context, do func()) error {
	free, err := s.ask(ctx)
	if err != nil {
		return err
	}
	defer free()
	return s.between(ctx, do)
}

// ask waits until no question is open, and blocks other questions until free is called.
func (s *Screen) ask(ctx context.Context) (free func(), err error) {
	s.mu.Lock()
	if s.yield != nil {
		s.yield()
	}
	s.mu.Unlock()
	return s.turn(ctx)
}

// turn is ask without withdrawing the open question.
func (s *Screen) turn(ctx context.Context) (free func(), err error) {
	select {
	case s.asking <- struct{}{}:
		return func() { <-s.asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// between runs do after all earlier output is shown, and holds back later output.
func (s *Screen) between(ctx context.Context, do func()) error {
	over := make(chan struct{})
	var begin sync.Once // called by the screen or when ctx ends
	s.put(shown{alone: func() { begin.Do(func() { defer close(over); do() }) }})
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	gaveUp := false
	begin.Do(func() { gaveUp = true }) // waits for a running do, which observes ctx
	if gaveUp {
		return context.Cause(ctx)
	}
	return nil
}

// Later runs do between two lines without waiting for it. It is meant for output to another
// stream.
func (s *Screen) Later(do func()) { s.put(shown{alone: do}) }

func (s *Screen) put(one shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, one)
	s.wake.Signal()
}

// flushTime limits how long Close waits for a terminal that does not accept output.
const flushTime = 5 * time.Second

// Close waits until all output is shown, but at most flushTime.
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
	_, _ = io.WriteString(s.out, text) // a closed pipe must not stop the run
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
