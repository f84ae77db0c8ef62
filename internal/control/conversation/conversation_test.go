package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/worktree/snapshot"
)

// bench is a session with a fake clock: a second passes between any two records.
type bench struct {
	*testing.T
	*session.Session
	root string
	now  time.Time
	gone []string // commits that are not in the repository
}

const (
	answering = "turn[1]/answer#1"
	talk      = "talk"
)

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, root: t.TempDir(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.Session = b.create()
	b.event(event.SessionStarted, "", event.Session{Query: "Talk", Provider: "scripted-loop", Base: "base"})
	b.event(event.AgentStarted, answering, event.AgentStart{Agent: "writer", Conversation: talk})
	return b
}

func (b *bench) create() *session.Session {
	b.Helper()
	s, err := session.Create(b.root, "p-talk", "Talk", func() time.Time { b.now = b.now.Add(time.Second); return b.now })
	b.must(err)
	b.Cleanup(func() { s.Close() }) //nolint:errcheck // every event is on disk
	return s
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) event(t event.Type, path string, data any) {
	b.Helper()
	b.must(b.Append(event.Event{Type: t, Path: path}, data))
}

// message stores a message with its text, or the ID of its call or result, as its ID.
func (b *bench) message(of, path, id string, role model.Role, parts ...model.Part) {
	b.Helper()
	store := conversation.Store{Session: b.Session, Path: path}
	b.must(store.Append(of, chat.Message{ID: id, Message: model.Message{Role: role, Parts: parts}, Used: provider.Usage{InputTokens: 10, OutputTokens: int64(7 * strings.Count(string(role), "assistant"))}}))
}

func (b *bench) user(id string) { b.message(talk, answering, id, model.User, model.Text{Text: id}) }

func (b *bench) call(id string) {
	b.message(talk, answering, id, model.Assistant, model.Text{Text: "I call."}, provider.ToolCall{ID: "c-" + id, Name: "write", Input: json.RawMessage(`{}`)})
}

func (b *bench) result(id, of string) {
	b.message(talk, answering, id, model.User, provider.ToolResult{ID: "c-" + of, Text: "Written."})
}

func (b *bench) snapshot(commit string) {
	b.must(b.Say(session.Part{Path: answering, Type: "snapshot", ID: "x", Snapshot: &event.Snapshot{N: 1, Commit: commit}}))
}

// state implements conversation.StateAt.
func (b *bench) state(_ context.Context, commit string) (snapshot.Snapshot, error) {
	if slices.Contains(b.gone, commit) {
		return snapshot.Snapshot{}, snapshot.ErrNone
	}
	return snapshot.Snapshot{Commit: commit, Tip: "tip of " + commit}, nil
}

func (b *bench) fork(at string) (*conversation.Fork, error) {
	b.Helper()
	v, err := session.Load(b.Dir)
	b.must(err)
	return conversation.NewFork(b.Context(), b.state, v, at)
}

// listed returns the messages of a session as lines, without the values that differ between runs.
func (b *bench) listed(dir string) (lines []string) {
	b.Helper()
	all, err := conversation.Messages(dir)
	b.must(err)
	for _, m := range all {
		line := fmt.Sprintf("%s %s %d %s", m.Role, m.ForkedFrom, m.Tokens, m.TokensFrom)
		if m.Summarized {
			line += " summarized"
		}
		if m.Summary != nil {
			line += ": " + m.Summary.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// T-17: a fork has the messages up to the given one, with new IDs and the summary at its place. The forked
// session does not change.
func TestFork(t *testing.T) {
	b := newBench(t)
	b.user("one")
	b.event(event.TodoChanged, answering, event.Todos{Items: []event.Todo{{Text: "first", Status: "pending"}}})
	b.call("two")
	b.snapshot("before two")
	b.result("three", "two")
	b.message(talk, answering, "sum", model.User, chat.Summary{Text: "So far.", Up: "two", Count: 2})
	b.message("other", answering+"/spawn/helper", "help", model.User, model.Text{Text: "Help."})
	b.event(event.TodoChanged, answering, event.Todos{Items: []event.Todo{{Text: "second", Status: "done"}}})
	b.call("four")
	b.snapshot("before four")
	b.must(b.Say(session.Part{Path: answering, Type: "text", Message: "cut", Conversation: talk, Role: "user"})) // killed
	b.event(event.StepCompleted, answering, event.Result{Commit: "end"})
	before := b.files()

	for _, tt := range []struct {
		at, snapshot, base, todo, gap string
		messages                      int
	}{
		{"one", "before two", "tip of before two", "", "", 1},
		{"two", "before two", "tip of before two", "first", "", 2},
		{"three", "before four", "tip of before four", "first", "", 3},
		{"four", "before four", "tip of before four", "second", "", 5},
		{"", "before four", "tip of before four", "second", "", 5},
		{"fo", "before four", "tip of before four", "second", "", 5},
	} {
		f, err := b.fork(tt.at)
		if err != nil {
			t.Errorf("%q: %v", tt.at, err)
			continue
		}
		todo := ""
		if len(f.From.Todos) > 0 {
			todo = f.From.Todos[0].Text
		}
		if f.From.Snapshot != tt.snapshot || f.Base != tt.base || todo != tt.todo || f.Gap != tt.gap || f.Agent != "writer" || f.From.Session != b.ID {
			t.Errorf("%q: %+v", tt.at, f)
		}
		to := b.create()
		b.must(f.WriteMessages(to))
		if got := b.listed(to.Dir); len(got) != tt.messages {
			t.Errorf("%q: %q", tt.at, got)
		}
		loaded, err := conversation.Store{Session: to}.Load(f.Conversation)
		if b.must(err); len(loaded) == 0 || loaded[0].ID == "one" || loaded[0].Parts[0] != (model.Text{Text: "one"}) {
			t.Errorf("%q: the conversation is %+v", tt.at, loaded)
		}
	}
	f, err := b.fork("four")
	b.must(err)
	to := b.create()
	b.must(f.WriteMessages(to))
	want := []string{"user one 5 estimate summarized", "assistant two 7 api summarized: So far.", "user three 6 estimate", "user help 6 estimate", "assistant four 7 api"}
	if got := b.listed(to.Dir); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if after := b.files(); after != before {
		t.Errorf("the session has changed:\n%s\n%s", before, after)
	}
}

// A copied message has the files of the session where it was written, as long as that exists.
func TestForkOfFork(t *testing.T) {
	b := newBench(t)
	b.user("one")
	b.event(event.TodoChanged, answering, event.Todos{Items: []event.Todo{{Text: "first", Status: "pending"}}})
	b.call("two")
	b.snapshot("before two")
	b.event(event.TodoChanged, answering, event.Todos{Items: []event.Todo{{Text: "second", Status: "pending"}}})
	b.result("three", "two")
	b.event(event.StepCompleted, answering, event.Result{Commit: "end"})
	f, err := b.fork("")
	b.must(err)
	to := b.create()
	b.must(f.WriteMessages(to))
	b.must(to.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "Talk", Provider: "scripted-loop", Agent: "writer", Base: "base of the fork", Forked: f.Origin()}))
	b.must(to.Append(event.Event{Type: event.StepStarted, Path: "turn[0]/land#1"}, event.StepStart{Snapshot: "start of the fork"}))
	all, err := conversation.Messages(to.Dir)
	b.must(err)
	for _, gone := range []bool{false, true} {
		snapshot, todo, gap := "before two", "first", ""
		if gone {
			b.must(os.RemoveAll(b.Dir))
			snapshot, todo, gap = "start of the fork", "second", "the session from which that message was copied is gone: the worktree is as its fork began"
		}
		v, err := session.Load(to.Dir)
		b.must(err)
		f, err := conversation.NewFork(t.Context(), b.state, v, all[1].ID)
		if b.must(err); f.From.Snapshot != snapshot || f.From.Todos[0].Text != todo || f.Gap != gap || f.Agent != "writer" {
			t.Errorf("%+v", f)
		}
	}
}

func (b *bench) files() (text string) {
	b.Helper()
	entries, err := os.ReadDir(b.Dir)
	b.must(err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(b.Dir, e.Name()))
		b.must(err)
		text += e.Name() + ": " + string(data)
	}
	return text
}

// Sessions that cannot be forked are refused. A fork whose files are no longer on record gets those of
// another moment.
func TestForkRefused(t *testing.T) {
	b := newBench(t)
	if _, err := b.fork(""); err == nil || !strings.Contains(err.Error(), "has no messages of coven's own loop") {
		t.Error(err)
	}
	b.user("abc-1")
	b.call("abc-2")
	b.snapshot("before")
	b.event(event.StepStarted, answering, event.StepStart{Snapshot: "start"})
	b.message("other", answering+"/spawn/helper", "sub", model.User, model.Text{Text: "Help."})
	b.result("abc-3", "abc-2")
	for at, want := range map[string]string{
		"abc":   "several messages of session " + b.ID + " have an ID that begins with abc",
		"xyz":   "session " + b.ID + " has no message xyz",
		"sub":   "message sub of session " + b.ID + " is of a subagent or a reviewer",
		"abc-2": "", "abc-3": "", "": "",
	} {
		_, err := b.fork(at)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want && !strings.HasPrefix(err.Error(), want) || exit.Code(err) != exit.Failed || exit.Next(err) != "coven sessions messages "+b.ID) {
			t.Errorf("%q: %v", at, err)
		}
	}
	for _, tt := range []struct {
		gone      []string
		base, gap string
	}{
		{nil, "tip of start", "the files of that moment are not on record: the worktree has those of "},
		{[]string{"start"}, "tip of before", "the files of that moment are not on record: the worktree has those of "},
		{[]string{"start", "before"}, "base", "the files of that moment are not on record any more: the worktree is as the session began"},
	} {
		b.gone = tt.gone
		if f, err := b.fork("abc-3"); err != nil || f.Base != tt.base || !strings.HasPrefix(f.Gap, tt.gap) {
			t.Errorf("%+v %v", f, err)
		}
	}
}

// T-35: parts reported by an agent CLI are messages, too, and their tokens are estimated.
func TestMessagesOfCLI(t *testing.T) {
	b := newBench(t)
	for _, p := range []session.Part{
		{Type: "text", Role: "user", Text: "Do it."},
		{Type: "reasoning", Text: "Hm."},
		{Type: "text", Text: "I do."},
		{Type: "tool_call", ID: "1", Tool: "Read"},
		{Type: "snapshot", ID: "1"},
		{Type: "tool_result", ID: "1", Text: "x"},
		{Type: "text", Text: "Done."},
	} {
		p.Path = answering
		b.must(b.Say(p))
	}
	all, err := conversation.Messages(b.Dir)
	b.must(err)
	var got []string
	for _, m := range all {
		line := m.Role + " " + m.TokensFrom
		for _, p := range m.Parts {
			line += " " + p.Type
		}
		got = append(got, line)
	}
	want := []string{"user estimate text", "assistant estimate reasoning text tool_call snapshot", "user estimate tool_result", "assistant estimate text"}
	if !slices.Equal(got, want) || all[0].Tokens != 6 {
		t.Errorf("%q, %d tokens", got, all[0].Tokens)
	}
}
