package main

import (
	"context"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// mailbox is where people reach a session that runs in this process: coven
// attach and coven cancel put requests into its directory, here they are taken.
type mailbox struct {
	session *session.Session
}

func newMailbox(s *session.Session) *mailbox { return &mailbox{session: s} }

// lookEvery is how often a session looks for requests.
const lookEvery = 200 * time.Millisecond

// open takes requests until stop is called. The context that it returns ends
// with runner.ErrCancelled when a person cancels the session.
func (m *mailbox) open(ctx context.Context) (running context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() { m.watch(ctx, cancel, done) })
	return ctx, func() {
		close(done)
		side.Wait()
		cancel(nil)
	}
}

func (m *mailbox) watch(ctx context.Context, cancel context.CancelCauseFunc, done <-chan struct{}) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		requests, err := m.session.Requests()
		if err != nil {
			continue // the next look may succeed
		}
		for _, r := range requests {
			if r.Kind == session.KindCancel && m.session.Take(r) {
				cancel(runner.ErrCancelled)
			}
		}
	}
}
