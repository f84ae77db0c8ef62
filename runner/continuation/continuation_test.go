package continuation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
)

// record is a journal in memory.
type record []event.Event

func (r record) At(path string, types ...event.Type) (found []event.Event) {
	for _, e := range r.All(types...) {
		if e.Path == path {
			found = append(found, e)
		}
	}
	return found
}

func (r record) All(types ...event.Type) (found []event.Event) {
	for _, e := range r {
		for _, t := range types {
			if e.Type == t {
				found = append(found, e)
			}
		}
	}
	return found
}

func (r *record) add(t event.Type, path string, data any) {
	text, _ := json.Marshal(data)
	*r = append(*r, event.Event{Seq: int64(len(*r) + 1), Type: t, Path: path, Data: text})
}

// Only the last calls before an interruption are in a message.
func TestCalls(t *testing.T) {
	var r record
	for _, name := range strings.Split("a b c d e f g h i j k l", " ") {
		r.add(event.AgentTool, "s#1", event.Tool{Summary: name})
	}
	if got := (Work{Journal: r, Path: "s#1"}).Resumed("", nil); strings.Contains(got, "- b") || !strings.HasSuffix(got, "\n\n- c\n- d\n- e\n- f\n- g\n- h\n- i\n- j\n- k\n- l") {
		t.Errorf("%q", got)
	}
	if got := (Work{Journal: r, Path: "other#1"}).Resumed("", nil); got != resumedText {
		t.Errorf("without calls: %q", got)
	}
}

// A conversation is superseded if it began before a person asked for a new one or for another provider, once.
func TestSuperseded(t *testing.T) {
	var r record
	of := func(path, continues string) string {
		return Leaf{Work: Work{Journal: r, Path: path}, Continues: continues}.Superseded()
	}
	expect := func(state string, a, b, c bool) {
		t.Helper()
		for name, want := range map[string]bool{"a#1": a, "b#1": b, "c#1": c} {
			continues := map[string]string{"c#1": "a#1"}[name]
			if got := of(name, continues); (got != "") != want {
				t.Errorf("%s: %s: %q", state, name, got)
			}
		}
	}
	r.add(event.AgentStarted, "a#1", event.AgentStart{})
	r.add(event.SessionResumed, "", event.Resumed{Retry: "a#1"})
	expect("resumed", false, false, false)
	r.add(event.SessionResumed, "", event.Resumed{Fresh: true})
	r.add(event.SessionResumed, "", event.Resumed{})
	expect("fresh", true, false, true)
	r.add(event.AgentStarted, "c#1", event.AgentStart{})
	expect("replaced where it continues", true, false, false)
	r.add(event.AgentStarted, "a#1", event.AgentStart{})
	expect("replaced", false, false, false)
	r.add(event.SessionResumed, "", event.Resumed{Provider: "codex"})
	expect("another provider", true, false, true)
	if got := of("a#1", ""); !strings.Contains(got, "codex") {
		t.Errorf("does not name the provider: %q", got)
	}
}

// A replacing conversation has the messages of people from the one that it replaces, and its own request.
func TestReplaced(t *testing.T) {
	var r record
	r.add(event.AgentStarted, "a#1", event.AgentStart{Prompt: "The task"})
	r.add(event.AgentMessage, "a#1", event.Message{By: "Ada", Text: "use b"})
	r.add(event.StepCompleted, "a#1", event.Result{Files: []string{"x", "y"}})
	r.add(event.AgentMessage, "b#1", event.Message{By: "Ada", Text: "and c"})
	l := Leaf{Work: Work{Journal: r, Path: "b#1"}, Prompt: "The request", Continues: "a#1", Continued: true}
	want := "The task\n\n" + replacedText + "\n\nIt has changed these files: x, y\n\nAda says: use b\n\n" + requestedText + "The request\n\nAda says: and c"
	if got := l.Replaced(); got != want || !IsReplacement(got) {
		t.Errorf("%s", got)
	}
}
