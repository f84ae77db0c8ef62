package cli

import (
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// FollowEvery is the interval at which a followed session is read.
const FollowEvery = 200 * time.Millisecond

// Spectator prints the events of a session as they arrive.
type Spectator struct {
	app  *App
	dir  string
	tail *event.Tail
}

// NewSpectator returns a Spectator that has printed nothing yet.
func NewSpectator(a *App, v session.View) *Spectator {
	return &Spectator{app: a, dir: v.Dir, tail: event.NewTail(filepath.Join(v.Dir, "events.jsonl"))}
}

// Show prints the new events and returns the state of the session before it read them. If that state is
// final, all events have been printed.
func (s *Spectator) Show() (session.View, error) {
	now, err := session.Load(s.dir)
	if err != nil {
		return now, err
	}
	return now, s.tail.Next(func(e event.Event) error { return s.app.Printf("%s", terminal.Lines(e)) })
}
