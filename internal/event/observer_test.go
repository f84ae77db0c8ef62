package event_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/event"
)

// observer records its calls and then runs does.
type observer struct {
	does func() error // may be nil

	mu   sync.Mutex
	seen []string
}

func (o *observer) note(text string) error {
	o.mu.Lock()
	o.seen = append(o.seen, text)
	o.mu.Unlock()
	if o.does == nil {
		return nil
	}
	return o.does()
}

func (o *observer) OnSpawn(_ event.Event, s event.SpawnStart) error { return o.note("spawn " + s.ID) }

func (o *observer) OnComplete(_ event.Event, s event.SpawnEnd) error {
	return o.note("complete " + s.ID)
}

func (o *observer) OnError(_ event.Event, s event.SpawnEnd) error {
	return o.note("error " + s.ID + ": " + s.Error.Message)
}

// C-119: Several concurrent observers receive OnSpawn, OnComplete and OnError in order. Errors
// and panics of an observer are logged and affect neither the session nor other observers. A slow observer
// blocks nothing.
func TestObservers(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	let := make(chan struct{})
	observers := map[string]*observer{
		"good": {}, "failing": {does: func() error { return errors.New("it is full") }},
		"panicking": {does: func() error { panic("oh") }}, "slow": {does: func() error { <-let; return nil }},
	}
	var mu sync.Mutex
	logged := map[string][]string{}
	stops := map[string]func(){}
	for name, o := range observers {
		stops[name] = j.Observe(o, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			logged[name] = append(logged[name], err.Error())
		})
	}
	for _, e := range []struct {
		kind event.Type
		data any
	}{
		{event.SpawnStarted, event.SpawnStart{ID: "a"}},
		{event.Warning, event.Text{Text: "of something else"}},
		{event.SpawnEnded, event.SpawnEnd{ID: "a", Status: event.StatusCompleted}},
		{event.SpawnStarted, event.SpawnStart{ID: "b"}},
		{event.SpawnEnded, event.SpawnEnd{ID: "b", Status: event.StatusFailed, Error: &event.SpawnError{Message: "no"}}},
	} {
		must(t, j.Append(event.Event{Type: e.kind, Session: "s"}, e.data)) // while the slow one is still busy with the first event
	}
	for _, name := range []string{"good", "failing", "panicking"} {
		stops[name]()
	}
	slow := observers["slow"]
	slow.mu.Lock()
	n := len(slow.seen)
	slow.mu.Unlock()
	if n > 1 {
		t.Errorf("the slow one was told %d times before it was done", n)
	}
	close(let)
	stops["slow"]()
	for name, o := range observers {
		if got := strings.Join(o.seen, ", "); got != "spawn a, complete a, spawn b, error b: no" {
			t.Errorf("%s saw: %s", name, got)
		}
	}
	for name, want := range map[string]string{"good": "", "slow": "", "failing": "it is full", "panicking": "panic: oh"} {
		if want == "" && len(logged[name]) == 0 {
			continue
		}
		if !slices.Equal(logged[name], slices.Repeat([]string{want}, 4)) {
			t.Errorf("%s: logged %q", name, logged[name])
		}
	}
}
