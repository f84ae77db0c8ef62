package launch

import (
	"context"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// Inbox receives the requests of people to a session that runs in this process: coven attach and coven cancel put them
// into its directory. A message stays there until it is in the journal.
type Inbox struct {
	session  *session.Session
	since    time.Time
	messages chan event.Message // to the running agent
	answers  *Approvals

	mu      sync.Mutex
	offered map[string]bool // messages that the running agent was sent
	taken   map[string]bool // messages that are in the journal
}

// NewInbox returns the inbox of a session.
func NewInbox(s *session.Session, answers *Approvals) *Inbox {
	m := &Inbox{session: s, answers: answers, since: s.Now(), messages: make(chan event.Message), offered: map[string]bool{}, taken: map[string]bool{}}
	for _, e := range s.Journal.Of(event.AgentMessage) {
		m.see(e)
	}
	s.Journal.Watch(m.see)
	return m
}

// see notes the messages that the journal has.
func (m *Inbox) see(e event.Event) {
	if e.Type == event.AgentMessage {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.taken[event.As[event.Message](e).ID] = true
	}
}

// restart sends the next agent the messages that the previous one did not acknowledge.
func (m *Inbox) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.offered)
}

// PollInterval is how often a session looks for requests.
const PollInterval = 200 * time.Millisecond

// Open takes requests until stop is called. The context that it returns ends
// with runner.ErrCancelled when a person cancels the session.
func (m *Inbox) Open(ctx context.Context) (running context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() { m.watch(cancel, done) })
	return ctx, func() {
		close(done)
		side.Wait()
		m.look(cancel) // for requests that came in the meantime
		cancel(nil)
	}
}

func (m *Inbox) watch(cancel context.CancelCauseFunc, done <-chan struct{}) {
	ticker := time.NewTicker(PollInterval)
	defer ticker.Stop()
	for {
		next, agents := m.look(cancel), m.messages
		if next == nil {
			next, agents = &event.Message{}, nil
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		case agents <- *next:
			m.mu.Lock()
			m.offered[next.ID] = true
			m.mu.Unlock()
		}
	}
}

// look carries out requests, and returns a message that the running agent has not been
// sent yet.
func (m *Inbox) look(cancel context.CancelCauseFunc) *event.Message {
	requests, err := m.session.Requests()
	if err != nil {
		return nil // the next look may succeed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		switch {
		case r.Kind == session.KindCancel && r.Time.Before(m.since):
			m.session.Take(r) // it was for an earlier run that has ended
		case r.Kind == session.KindCancel && m.session.Take(r):
			cancel(runner.ErrCancelled)
		case r.Kind == session.KindAnswer && r.Answer != nil:
			if m.session.Take(r) {
				m.answers.deliver(r)
			}
		case r.Kind != session.KindMessage:
		case m.taken[r.ID]:
			m.session.Take(r)
		case !m.offered[r.ID]:
			return &event.Message{ID: r.ID, Text: r.Text, By: r.By}
		}
	}
	return nil
}
