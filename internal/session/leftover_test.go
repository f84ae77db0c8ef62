package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// Leftovers are found and removed; files that sessions need stay.
func TestLeftovers(t *testing.T) {
	root := t.TempDir()
	over := begin(t, root)
	must(t, over.Append(event.Event{Type: event.SessionCompleted}, event.Ended{}))
	must(t, over.Close())
	running := begin(t, root)
	waiting := begin(t, root)
	must(t, waiting.Append(event.Event{Type: event.SessionWaiting}, event.Waiting{Reason: "review"}))
	must(t, waiting.Close())
	empty, err := session.Create(root, "t", "Never began", day)
	must(t, err)
	must(t, empty.Close())
	begun, err := session.Create(root, "t", "About to begin", day)
	must(t, err)

	for _, id := range []string{over.ID, running.ID, waiting.ID, "gone"} {
		_, err := session.Ask(root, id, session.Request{Kind: session.KindMessage, Time: day()})
		must(t, err)
	}
	for _, s := range []*session.Session{over, running} {
		must(t, os.WriteFile(filepath.Join(s.Dir, ".session.md42"), nil, 0o644))
		must(t, os.WriteFile(filepath.Join(s.Dir, ".mine"), nil, 0o644))
	}
	later := time.Now().Add(time.Hour)
	leftovers, err := session.FindLeftovers(root, later)
	must(t, err)
	inbox := filepath.Join(root, ".coven/run/inbox")
	want := []string{
		filepath.Join(inbox, over.ID), filepath.Join(inbox, "gone"), empty.Dir, filepath.Join(over.Dir, ".session.md42"),
	}
	var found []string
	for _, l := range leftovers {
		found = append(found, l.Path)
	}
	slices.Sort(want)
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Fatalf("found %v\nwant  %v", found, want)
	}
	for _, l := range leftovers {
		must(t, l.Remove())
		if _, err := os.Lstat(l.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", l.Path, err)
		}
	}
	if left, err := session.FindLeftovers(root, later); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	must(t, begun.Append(event.Event{Type: event.SessionStarted}, event.Session{}))
	if _, err := os.Stat(filepath.Join(over.Dir, ".mine")); err != nil {
		t.Error(err)
	}
}

// A session that starts after the search is not removed.
func TestLeftoverTaken(t *testing.T) {
	root := t.TempDir()
	s, err := session.Create(root, "t", "Never began", day)
	must(t, err)
	must(t, s.Close())
	leftovers, err := session.FindLeftovers(root, time.Now().Add(time.Hour))
	if err != nil || len(leftovers) != 1 {
		t.Fatalf("%v, %v", leftovers, err)
	}
	s, err = session.Open(root, s.ID, day)
	must(t, err)
	if err := leftovers[0].Remove(); !errors.Is(err, session.ErrBusy) {
		t.Errorf("Remove of a session that is being written: %v", err)
	}
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{}))
	must(t, s.Close())
	if err := leftovers[0].Remove(); !errors.Is(err, session.ErrBusy) {
		t.Errorf("Remove of a session that has begun: %v", err)
	}
	if _, err := session.Load(s.Dir); err != nil {
		t.Error(err)
	}
	// A new session may be about to start.
	if leftovers, err := session.FindLeftovers(t.TempDir(), time.Now()); err != nil || len(leftovers) > 0 {
		t.Errorf("%v, %v", leftovers, err)
	}
}
