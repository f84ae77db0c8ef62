package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// forgetful calls a tool repeatedly and checks the requests that it receives.
type forgetful struct {
	t         *testing.T
	turns     int
	answered  int
	summaries int
	requests  []model.Request // since the last summary
	openings  int             // number of openings with a memory
}

func (m *forgetful) Turn(_ context.Context, r model.Request, emit func(model.Event) error) error {
	if strings.HasPrefix(r.System, "You summarize") {
		m.summaries++
		m.requests = nil
		return emitAll(emit, model.Text{Text: "It was looked at."}, model.End{Reason: model.Done})
	}
	m.check(r)
	m.requests = append(m.requests, r)
	if m.answered++; m.answered > m.turns {
		return emitAll(emit, model.Text{Text: "Done."}, model.End{Reason: model.Done})
	}
	call := provider.ToolCall{ID: fmt.Sprint(m.answered), Name: "look", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.answered))}
	return emitAll(emit, call, model.End{Reason: model.ForTools})
}

// check checks that the request has the last results and the todo list, and the same beginning as the one before.
func (m *forgetful) check(r model.Request) {
	var all strings.Builder
	for _, message := range r.Messages {
		for _, part := range message.Parts {
			switch p := part.(type) {
			case model.Text:
				all.WriteString(p.Text)
			case provider.ToolResult:
				all.WriteString(p.Text)
			}
		}
	}
	for n := max(1, m.answered-4); n <= min(m.answered, 60); n++ {
		if !strings.Contains(all.String(), fmt.Sprintf("result %d:", n)) {
			m.t.Errorf("request %d has no result %d:\n%s", m.answered+1, n, all.String())
		}
	}
	if m.summaries > 0 {
		if !strings.Contains(all.String(), "# Your todo list\n\n[~] look at it") || strings.Contains(all.String(), "[ ] an old list") {
			m.t.Errorf("request %d has not the list of what is to do:\n%s", m.answered+1, all.String())
		}
		m.openings++
	}
	if strings.Contains(all.String(), "hunter2-hunter2") && m.summaries > 0 && strings.Contains(r.Messages[0].Parts[0].(model.Text).Text, "hunter") {
		m.t.Error("a secret is in the memory")
	}
	if last := len(m.requests) - 1; last >= 0 {
		before := m.requests[last]
		if len(r.Messages) < len(before.Messages) || !reflect.DeepEqual(before.Messages, r.Messages[:len(before.Messages)]) {
			m.t.Errorf("request %d does not begin like the one before", m.answered+1)
		}
	}
}

// T-36: After a summary each request has the last results and the todo list, and the beginning of requests changes
// only with a summary. The memory contains no secret and no part of one.
func TestMemory(t *testing.T) {
	b := newBench(nil)
	m := &forgetful{t: t, turns: 60}
	b.job.Own = []tool.Tool{{
		Kind: tool.Kind{Name: "look"}, Description: "Looks.", ReadOnly: true, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Call: func(context.Context, json.RawMessage) (string, error) {
			return fmt.Sprintf("result %d: %s", m.answered, strings.Repeat("hunter2-hunter2 ", 10+m.answered%30)), nil
		},
	}}
	b.job.MaxTurns = 100
	todos := "[ ] an old list"
	var last chat.Memory
	loop := chat.Loop{
		Model: m, Store: &b.store, Window: func(string) int { return 2000 },
		Todos:  func() string { return todos },
		Hidden: func(text string) string { return strings.ReplaceAll(text, "hunter2-hunter2", "***") },
		Remembered: func(memory chat.Memory) error {
			last = memory
			todos = "[~] look at it\n[ ] say what it is"
			return nil
		},
	}
	report, err := loop.Run(t.Context(), b.job)
	if err != nil || report.Text != "Done." {
		t.Fatalf("%+v %v", report, err)
	}
	if m.summaries < 3 || m.openings < 10 {
		t.Errorf("%d summaries, %d requests after one", m.summaries, m.openings)
	}
	var results []string
	for _, r := range last.Results {
		results = append(results, string(r.Call.Input)+" "+r.Text[:10])
	}
	want := []string{`{"n":56} result 56:`, `{"n":57} result 57:`, `{"n":58} result 58:`, `{"n":59} result 59:`, `{"n":60} result 60:`}
	if !slices.Equal(results, want) || last.Task != "Do it." || last.Summary == nil || last.Summary.Text != "It was looked at." {
		t.Errorf("%q, %+v", results, last)
	}
	stored := fmt.Sprintf("%+v %+v", last, last.Summary)
	if strings.Contains(stored, "hunter") {
		t.Errorf("a secret is in %s", stored)
	}

	// A run begins with the list unless the conversation already shows the current one.
	first := b.store.messages["c"][0]
	if text := first.Parts[len(first.Parts)-1].(model.Text).Text; !strings.Contains(text, "[ ] an old list") {
		t.Errorf("the first message ends with %q", text)
	}
	for _, list := range []string{todos, "[x] look at it"} {
		todos = list
		before := len(b.store.messages["c"])
		b.job.Resume, b.job.Prompt, m.turns, loop.Remembered = true, "Go on.", 0, nil
		if report, err := loop.Run(t.Context(), b.job); err != nil || report.Text != "Done." {
			t.Fatalf("%+v %v", report, err)
		}
		if parts := b.store.messages["c"][before].Parts; len(parts) == 2 != (list == "[x] look at it") {
			t.Errorf("with the list %q, the message is %+v", list, parts)
		}
	}
}

// If a summary refers to a message that is gone, the conversation continues with all remaining messages.
func TestSummaryOfNothing(t *testing.T) {
	b := newBench(nil, says(model.Text{Text: "Done."}))
	b.store.messages["c"] = []chat.Message{
		{ID: "1", Message: model.Message{Role: model.User, Parts: []model.Part{model.Text{Text: "Do it."}}}},
		{ID: "2", Message: model.Message{Role: model.User, Parts: []model.Part{chat.Summary{Text: "Half of it is done.", Up: "gone"}}}},
		{ID: "3", Message: model.Message{Role: model.Assistant, Parts: []model.Part{model.Text{Text: "I go on."}}}},
	}
	b.job.Resume, b.job.Prompt = true, "And now?"
	if report, err := b.run(t.Context()); err != nil || report.Text != "Done." {
		t.Fatalf("%+v %v", report, err)
	}
	text := fmt.Sprint(b.model.requests[0].Messages)
	for _, part := range []string{"Half of it is done.", "I go on.", "And now?"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q", text, part)
		}
	}
}
