package main

import (
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// followEvery is how often a followed session is read again.
const followEvery = 200 * time.Millisecond

// spectator shows a session's events to a person as they come.
type spectator struct {
	app  *app
	dir  string
	tail *event.Tail
}

func newSpectator(a *app, v session.View) *spectator {
	return &spectator{app: a, dir: v.Dir, tail: event.NewTail(filepath.Join(v.Dir, "events.jsonl"))}
}

// show shows the events that are new, and returns the session as it was before
// they were read: what ended it by then is shown.
func (s *spectator) show() (session.View, error) {
	now, err := session.Load(s.dir)
	if err != nil {
		return now, err
	}
	events, err := s.tail.Next()
	if err != nil {
		return now, err
	}
	for _, e := range events {
		if err := s.app.say("%s", terminal.Lines(e)); err != nil {
			return now, err
		}
	}
	return now, nil
}
