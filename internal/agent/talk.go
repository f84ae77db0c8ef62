package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// talk is what the agent still owes an answer to. The agent's input stays open
// until a result has come that answers its task and every message.
type talk struct {
	mu      sync.Mutex
	said    map[string]bool // messages that were taken
	unheard map[string]bool // those that are not in the agent's conversation yet
	owed    bool            // a result must come: for the task, or for a message that was heard
	closed  bool            // the input: nothing more is said to the agent
	moved   chan struct{}   // holds one when a result came
}

func newTalk() *talk {
	return &talk{said: map[string]bool{}, unheard: map[string]bool{}, owed: true, moved: make(chan struct{}, 1)}
}

// expect notes that a message is about to be said.
func (t *talk) expect(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said[id], t.unheard[id] = true, true
}

// knows reports whether the message was said before: a CLI may give no result for
// one that it is told twice.
func (t *talk) knows(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[id]
}

// heard notes that a message is in the conversation: a result must follow.
func (t *talk) heard(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed = t.owed || t.unheard[id]
	delete(t.unheard, id)
}

// answered notes a result, and wakes the one who may close the input now.
func (t *talk) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed = false
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// settle closes the talk, if nothing is owed, and reports whether it is closed.
func (t *talk) settle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = t.closed || !t.owed && len(t.unheard) == 0
	return t.closed
}

// over reports whether the agent has answered everything that it will be told.
func (t *talk) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// open says what the agent owes: a result, and how many messages it never heard.
func (t *talk) open() (owed bool, unheard int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed, len(t.unheard)
}

// feed says everything that is said to the agent: its task, then messages. It
// alone takes messages and it alone closes the input, so no message is taken
// that cannot be said. It ends when the input is closed, the agent is to be
// stopped or done is closed.
func (r *run) feed(ctx context.Context, done <-chan struct{}) {
	if _, err := r.child.Stdin().Write(r.command.Input); err != nil {
		r.child.Stop(fmt.Errorf("the agent did not take its task: %w", err))
		return
	}
	if r.command.Once {
		r.hangUp()
	}
	messages := r.job.Messages
	for {
		select {
		case <-done:
			return
		case <-r.stopping:
			return
		case <-r.talk.moved:
			if !r.talk.settle() {
				continue
			}
			if !r.command.Once {
				r.hangUp()
			}
			return
		case m, more := <-messages:
			if !more {
				messages = nil
				continue
			}
			r.pass(ctx, m)
		}
	}
}

// pass makes a message durable and says it to the agent. A message to an agent
// that is to be stopped is not taken.
func (r *run) pass(ctx context.Context, m Message) {
	select {
	case <-r.stopping:
		return
	default:
	}
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if r.talk.knows(m.ID) {
		return
	}
	input, err := r.job.Provider.Message(ctx, provider.Message{ID: m.ID, Text: m.Text})
	if err != nil {
		r.warn("cannot send the message from %s to the agent: %v", m.By, err)
		return
	}
	if err := r.job.Emit(event.AgentMessage, event.Message{ID: m.ID, Text: m.Text, By: m.By}); err != nil {
		r.unfed = err
		r.child.Stop(err)
		return
	}
	r.talk.expect(m.ID)
	if _, err := r.child.Stdin().Write(input); err != nil {
		r.child.Stop(fmt.Errorf("the agent did not take a message: %w", err))
	}
}

// hangUp closes the agent's input: it has nothing more to do.
func (r *run) hangUp() {
	if err := r.child.Stdin().Close(); err != nil {
		r.unfed = fmt.Errorf("close the agent's input: %w", err)
		r.child.Stop(r.unfed)
	}
}

// warn tells the user. A record that cannot be written shows elsewhere.
func (r *run) warn(format string, args ...any) {
	_ = r.job.Emit(event.Warning, event.Text{Text: fmt.Sprintf(format, args...)})
}
