package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/worktree/tripwire"
)

// The event lists the most severe changes first, at most event.MaxChanged of them, and its summary names
// only those.
func TestRepositoryChange(t *testing.T) {
	if data := RepositoryChange(tripwire.Found{}); data != nil {
		t.Fatalf("got %+v for nothing", data)
	}
	since := time.Unix(1, 0)
	found := tripwire.Found{Since: since, Rescue: "refs/coven/rescue/T/1", NotFiles: "git broke"}
	for range event.MaxChanged {
		found.Changes = append(found.Changes, tripwire.Change{Kind: "checkout", Name: "a.go"})
	}
	for _, name := range []string{"hooks/a", "hooks/b", "hooks/c", "hooks/d"} {
		found.Changes = append(found.Changes, tripwire.Change{Kind: "hook", Name: name})
	}
	for i := range found.Changes {
		found.Changes[i].After.Text = "x"
	}
	data := RepositoryChange(found)
	if data.Severity != event.SeverityStops || len(data.Changes) != event.MaxChanged || data.More != 4 || data.Changes[0].Name != "hooks/a" {
		t.Errorf("got %+v", data)
	}
	want := "the repository changed during the step: hook hooks/a was added, hook hooks/b was added, hook hooks/c was added, 5 more changes; files were not compared: git broke"
	if data.Summary() != want {
		t.Errorf("got %s\nwant %s", data.Summary(), want)
	}
	if !strings.Contains(data.Undo(), "coven rescue show refs/coven/rescue/T/1") {
		t.Errorf("got %s", data.Undo())
	}
}

// Compare finds changes, and returns an error if it cannot compare.
func TestCompare(t *testing.T) {
	s := newWorkspace(t)
	_, err := s.Enter(t.Context())
	if err := errors.Join(err, s.Watch(t.Context())); err != nil {
		t.Fatal(err)
	}
	plant(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if change, err := s.Compare(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", change, err)
	}
	change, err := s.Compare(t.Context())
	if err != nil || change == nil || change.Severity != event.SeverityStops || change.Changes[0].Name != "config.worktree" {
		t.Errorf("%+v, %v", change, err)
	}
	if err := s.EndWatch(); err != nil || tripwire.Watched(s.Worktree) {
		t.Errorf("the watch goes on: %v", err)
	}
}

// plant changes the configuration of git, as an unsandboxed agent can.
func plant(t *testing.T, s *Workspace) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Repo.GitDir, "config.worktree"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Changes while a coven was killed are recorded once, when the next one enters.
func TestReport(t *testing.T) {
	s := newWorkspace(t)
	recorded := func() (changes []event.RepositoryChange) {
		t.Helper()
		if _, err := s.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Session.Events() {
			if e.Type == event.RepositoryChanged {
				changes = append(changes, event.As[event.RepositoryChange](e))
			}
		}
		return changes
	}
	watch := func() {
		t.Helper()
		if err := s.Watch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := recorded(); got != nil {
		t.Fatalf("in a new worktree: %+v", got)
	}
	watch() // and is killed
	if got := recorded(); got != nil || tripwire.Watched(s.Worktree) {
		t.Errorf("nothing has changed: %+v", got)
	}
	watch()
	plant(t, s)
	for range 2 {
		if got := recorded(); len(got) != 1 || got[0].Severity != event.SeverityHolds || got[0].Changes[0].Name != "config.worktree" || tripwire.Watched(s.Worktree) {
			t.Errorf("got %+v", got)
		}
	}
}

// othersRunning returns the tasks that a coven is working on now.
func TestOthersRunning(t *testing.T) {
	s := newWorkspace(t)
	newSession(t, s.Repo.Root, "other")
	if err := newSession(t, s.Repo.Root, "killed").Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.othersRunning(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("got %q", got)
	}
}
