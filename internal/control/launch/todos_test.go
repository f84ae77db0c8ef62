package launch

import (
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// T-36: the agents of steps share a list, which a fork takes over; a subagent and a reviewer have their own.
func TestTodos(t *testing.T) {
	s, err := session.Create(t.TempDir(), "p-x", "X", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	forked := &event.Fork{Session: "other", Message: "m", Todos: []event.Todo{{Text: "from the other", Status: event.TodoPending}}}
	if err := s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "X", Forked: forked}); err != nil {
		t.Fatal(err)
	}
	c := &Launcher{Session: s}
	list := func(path string, who role) todos {
		who.Path = path
		return (&agentRun{Launcher: c, role: who}).todos()
	}
	implement, fix := list("implement#1", role{}), list("fix#1", role{})
	helper, reviewer := list("implement#1/spawn/x", role{subagent: true}), list("review#1/agent", role{readOnly: true})
	first := func(of todos) string {
		if all := of.Todos(); len(all) > 0 {
			return all[0].Text
		}
		return ""
	}
	if first(implement) != "from the other" || first(helper) != "" || first(reviewer) != "" {
		t.Errorf("%q %q %q", first(implement), first(helper), first(reviewer))
	}
	for _, of := range []todos{implement, helper, reviewer} {
		if err := of.SetTodos([]event.Todo{{Text: "of " + of.owner, Status: event.TodoPending}}); err != nil {
			t.Fatal(err)
		}
	}
	if first(fix) != "of " || first(helper) != "of implement#1/spawn/x" || first(reviewer) != "of review#1/agent" {
		t.Errorf("%q %q %q", first(fix), first(helper), first(reviewer))
	}
}
