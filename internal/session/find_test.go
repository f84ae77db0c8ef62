package session_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A session that starts during a search is not damaged: its views may appear after the search
// found no events.
func TestSessionsBeginWhileOthersLook(t *testing.T) {
	root := t.TempDir()
	const sessions = 100
	failed := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for n := range sessions {
			s, err := session.Create(root, fmt.Sprintf("t-%d", n), fmt.Sprintf("Title %d", n), day)
			if err == nil {
				err = errors.Join(s.Append(event.Event{Type: event.SessionStarted}, event.Session{}), s.Close())
			}
			if err != nil {
				t.Error(err)
				close(failed)
				return
			}
		}
	})
	looks := func(look func(n int) (began bool, err error)) {
		for n := 0; n < sessions; {
			select {
			case <-failed:
				return
			default:
			}
			began, err := look(n)
			if errors.As(err, new(*session.DamagedError)) {
				t.Error(err)
				return
			}
			if began {
				n++
			}
		}
	}
	busy.Go(func() {
		looks(func(n int) (bool, error) {
			v, err := session.Load(filepath.Join(root, session.Dir, fmt.Sprintf("%s-title-%d", day().Format(time.DateOnly), n)))
			return err == nil && !v.Started.IsZero(), err
		})
	})
	busy.Go(func() {
		f := session.NewFinder(root)
		looks(func(n int) (bool, error) {
			_, err := f.OfTask(fmt.Sprintf("t-%d", n))
			return err == nil, err
		})
	})
	busy.Wait()
}

// The cache of a Finder never hides a session, even if the session is new, removed, or a
// replacement with the same ID.
func TestFinderFindsWhatChanged(t *testing.T) {
	root := t.TempDir()
	f := session.NewFinder(root)
	of := func(task, want string) {
		t.Helper()
		v, err := f.OfTask(task)
		if want == "" && !errors.Is(err, session.ErrNone) || want != "" && (err != nil || v.ID != want) {
			t.Fatalf("%s: %q, %v; want %q", task, v.ID, err, want)
		}
	}
	of("a", "")
	s, err := session.Create(root, "a", "Same title", day)
	must(t, err)
	of("a", "") // it has not started
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{}))
	of("a", s.ID)
	of("b", "")
	must(t, s.Append(event.Event{Type: event.SessionCompleted}, event.Ended{}))
	must(t, s.Close())
	of("a", s.ID)

	must(t, os.RemoveAll(s.Dir))
	of("a", "")
	other, err := session.Create(root, "b", "Same title", day)
	must(t, err)
	defer other.Close() //nolint:errcheck // every event is on disk
	must(t, other.Append(event.Event{Type: event.SessionStarted}, event.Session{}))
	if other.ID != s.ID {
		t.Fatalf("%s is not where %s was", other.ID, s.ID)
	}
	of("b", other.ID)
	of("a", "")
	must(t, os.Rename(other.Dir, filepath.Join(root, session.Dir, "renamed")))
	of("b", "renamed")
}

// The view of an open session matches its events.
func TestViewOfOpenSession(t *testing.T) {
	s := begin(t, t.TempDir())
	defer s.Close() //nolint:errcheck // every event is on disk
	must(t, s.Append(event.Event{Type: event.StepStarted, Path: "a#1"}, event.StepStart{Kind: "script"}))
	before, err := s.View()
	must(t, err)
	must(t, s.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, map[string]any{"ok": true}))
	after, err := s.View()
	must(t, err)
	if before.Steps[0].Status != session.Running || after.Steps[0].Status != session.Completed {
		t.Errorf("before: %+v\nafter: %+v", before.Steps, after.Steps)
	}
}
