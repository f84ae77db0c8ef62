package driver

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/plugins/provider"
)

// owedResults tracks the results that the agent still owes. The agent's input stays open until a
// result follows its task and every message.
type owedResults struct {
	mu             sync.Mutex
	sent           map[string]bool // IDs of accepted messages
	unacknowledged map[string]bool // IDs of messages that the CLI has not acknowledged
	owed           bool            // a result must follow, for the task or an acknowledged message
	closed         bool            // the input is closed
	moved          chan struct{}   // receives a value after each result
}

func newOwedResults() *owedResults {
	return &owedResults{sent: map[string]bool{}, unacknowledged: map[string]bool{}, owed: true, moved: make(chan struct{}, 1)}
}

// expect records that a message is about to be sent.
func (t *owedResults) expect(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[id], t.unacknowledged[id] = true, true
}

// knows reports whether the message was sent before. A CLI may return no result for a duplicate.
func (t *owedResults) knows(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent[id]
}

// acknowledged records that a message is in the conversation: a result must follow.
func (t *owedResults) acknowledged(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed = t.owed || t.unacknowledged[id]
	delete(t.unacknowledged, id)
}

// answered records a result and wakes feed, which may now close the input.
func (t *owedResults) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed = false
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// closeIfDone closes the talk if the agent owes nothing, and reports whether it is closed.
func (t *owedResults) closeIfDone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = t.closed || !t.owed && len(t.unacknowledged) == 0
	return t.closed
}

// done reports whether the input is closed and everything has been answered.
func (t *owedResults) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// open reports whether a result is missing, and the number of unacknowledged messages.
func (t *owedResults) open() (owed bool, unread int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed, len(t.unacknowledged)
}

// feed sends the agent its task and then messages. Only feed accepts messages and closes
// the input, so every accepted message can be sent. It returns when the input is
// closed, the agent must stop, or done is closed.
func (r *run) feed(ctx context.Context, done <-chan struct{}) {
	if err := r.send(r.command.Input); err != nil {
		r.child.Stop(fmt.Errorf("send the task to the agent: %w", err))
		return
	}
	if r.command.Once {
		r.closeInput()
	}
	messages := r.job.Messages
	for {
		select {
		case <-done:
			return
		case <-r.stopping:
			return
		case <-r.owed.moved:
			if !r.owed.closeIfDone() {
				continue
			}
			if !r.command.Once {
				r.closeInput()
			}
			r.dismiss(done)
			return
		case m, more := <-messages:
			if !more {
				messages = nil
				continue
			}
			r.pass(ctx, m)
		case m := <-r.notes:
			r.pass(ctx, m)
		}
	}
}

// pass makes a message durable and sends it to the agent. It does not accept messages
// to an agent that must stop.
func (r *run) pass(ctx context.Context, m event.Message) {
	select {
	case <-r.stopping:
		return
	default:
	}
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if r.owed.knows(m.ID) {
		return
	}
	input, err := r.job.Provider.Message(ctx, provider.Message{ID: m.ID, Text: m.Text})
	if err != nil {
		r.warn("cannot send the message from %s to the agent: %v", m.By, err)
		return
	}
	if err := r.job.Emit(event.AgentMessage, m); err != nil {
		r.sendErr = err
		r.child.Stop(err)
		return
	}
	r.owed.expect(m.ID)
	if err := r.send(input); err != nil {
		r.child.Stop(fmt.Errorf("send a message to the agent: %w", err))
	}
}

// dismiss stops a CLI that neither exits nor prints anything for a while after its last result.
func (r *run) dismiss(done <-chan struct{}) {
	grace := hangGrace
	if r.command.Server {
		grace = serverGrace
	}
	for printed := r.printed.Load(); ; {
		timer := clock.NewTimer(grace)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		now := r.printed.Load()
		if now == printed || r.command.Server {
			r.child.Stop(errOver)
			return
		}
		printed = now
	}
}

// send writes to the agent's input.
func (r *run) send(input []byte) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	_, err := r.child.Stdin().Write(input)
	return err
}

// closeInput closes the agent's input.
func (r *run) closeInput() {
	if err := r.child.Stdin().Close(); err != nil {
		r.sendErr = fmt.Errorf("close the agent's input: %w", err)
		r.child.Stop(r.sendErr)
	}
}

// warn records a warning. A failure to record it is reported elsewhere.
func (r *run) warn(format string, args ...any) {
	_ = r.job.Emit(event.Warning, event.Text{Text: fmt.Sprintf(format, args...)})
}
