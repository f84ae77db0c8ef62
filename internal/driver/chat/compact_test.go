package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// small is a model with a small context window that checks all its requests.
type small struct {
	t         *testing.T
	window    int
	bytes     int // per token
	turns     int // turns with calls before the last turn
	answered  int
	summaries int
	largest   int
}

// took returns the number of tokens of a request.
func (m *small) took(r model.Request) int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, message := range r.Messages {
		for _, part := range message.Parts {
			switch p := part.(type) {
			case model.Text:
				n += len(p.Text)
			case provider.ToolCall:
				n += len(p.Name) + len(p.Input)
			case provider.ToolResult:
				n += len(p.Text)
			default:
				m.t.Errorf("the model was sent a %T", part)
			}
		}
	}
	return n / m.bytes
}

func (m *small) Turn(_ context.Context, r model.Request, emit func(model.Event) error) error {
	took := m.took(r)
	m.largest = max(m.largest, took)
	if took > m.window {
		m.t.Errorf("request %d takes %d tokens", m.answered, took)
	}
	checkPairs(m.t, r)
	end := model.End{Reason: model.Done, Usage: provider.Usage{InputTokens: int64(took), OutputTokens: 10}}
	if strings.HasPrefix(r.System, "You summarize") {
		m.summaries++
		if len(r.Tools) > 0 {
			m.t.Error("a summary has tools")
		}
		return emitAll(emit, model.Text{Text: fmt.Sprintf("Summary %d: %s", m.summaries, strings.Repeat("much ", 500))}, end)
	}
	if first := r.Messages[0].Parts[0].(model.Text).Text; !strings.HasPrefix(first, "Do it.") || m.summaries > 0 && !strings.Contains(first, fmt.Sprintf("Summary %d: ", m.summaries)) {
		m.t.Errorf("the conversation begins with %.80q after %d summaries", first, m.summaries)
	}
	if m.answered++; m.answered > m.turns {
		return emitAll(emit, model.Text{Text: "Done."}, end)
	}
	end.Reason = model.ForTools
	events := []model.Event{model.Text{Text: "I look."}}
	for i := range 1 + m.answered%3 {
		events = append(events, provider.ToolCall{ID: fmt.Sprintf("c%d-%d", m.answered, i), Name: "look", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.answered))})
	}
	return emitAll(emit, append(events, end)...)
}

func emitAll(emit func(model.Event) error, events ...model.Event) error {
	for _, e := range events {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// checkPairs checks that roles alternate, and that calls and results match pairwise in adjacent messages.
func checkPairs(t *testing.T, r model.Request) {
	t.Helper()
	var open []string
	for i, message := range r.Messages {
		if want := []model.Role{model.User, model.Assistant}[i%2]; message.Role != want {
			t.Fatalf("message %d is of %s", i, message.Role)
		}
		var calls []string
		for _, part := range message.Parts {
			switch p := part.(type) {
			case provider.ToolCall:
				calls = append(calls, p.ID)
			case provider.ToolResult:
				at := slices.Index(open, p.ID)
				if at < 0 {
					t.Errorf("result %s has no call", p.ID)
					continue
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(open) > 0 {
			t.Errorf("calls %v have no result", open)
		}
		open = calls
	}
	if len(open) > 0 {
		t.Errorf("calls %v have no result", open)
	}
}

// long returns a bench whose tool returns texts of many sizes.
func long(window int) (*bench, chat.Loop) {
	random := rand.New(rand.NewSource(1))
	b := newBench(nil)
	b.job.Own = []tool.Tool{{
		Kind: tool.Kind{Name: "look"}, Description: "Looks.", ReadOnly: true, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Call: func(context.Context, json.RawMessage) (string, error) {
			size := random.Intn(600)
			if random.Intn(20) == 0 {
				size = 20_000 // exceeds the window
			}
			return strings.Repeat("a", size), nil
		},
	}}
	b.job.MaxTurns = 500
	return b, chat.Loop{Store: &b.store, Window: func(string) int { return window }}
}

// T-21: A conversation of 400 turns fits into a window of 2,000 tokens at each request, keeps calls and results
// together, and stores all its messages.
func TestCompaction(t *testing.T) {
	for _, bytes := range []int{4, 2} { // a correct estimate, and one that is too low by half
		b, loop := long(2000)
		m := &small{t: t, window: 2000, bytes: bytes, turns: 400}
		loop.Model = m
		report, err := loop.Run(t.Context(), b.job)
		if err != nil || report.Error != "" || report.Text != "Done." {
			t.Fatalf("%+v %v", report, err)
		}
		if m.summaries < 20 || m.largest < 1000 {
			t.Errorf("%d summaries, at most %d tokens", m.summaries, m.largest)
		}
		stored := b.store.messages["c"]
		turns, compacted := 0, 0
		for _, s := range stored {
			if _, is := s.Parts[0].(chat.Summary); is {
				compacted++
			} else if s.Role == model.Assistant {
				turns++
			}
		}
		if turns != 401 || compacted != m.summaries || len(stored) != 1+2*400+1+compacted {
			t.Errorf("%d messages, %d turns, %d summaries of %d", len(stored), turns, compacted, m.summaries)
		}
		if got := strings.Count(strings.Join(b.said, " "), "session.compacted"); got != compacted {
			t.Errorf("%d events", got)
		}
	}
}

// Recent messages are unchanged, and a resumed conversation continues from its last summary.
func TestCompactionResumed(t *testing.T) {
	b, loop := long(2000)
	m := &small{t: t, window: 2000, bytes: 4, turns: 60}
	loop.Model = m
	if report, err := loop.Run(t.Context(), b.job); err != nil || report.Text != "Done." {
		t.Fatal(report, err)
	}
	before := m.summaries
	b.job.Resume, b.job.Prompt = true, "Go on."
	m.turns, m.answered = 1, 0
	if report, err := loop.Run(t.Context(), b.job); err != nil || report.Text != "Done." {
		t.Fatal(report, err)
	}
	if m.summaries > before+1 {
		t.Errorf("%d summaries after %d", m.summaries, before)
	}
}

// A conversation that cannot fit ends with an error.
func TestCompactionFails(t *testing.T) {
	b, loop := long(2000)
	b.job.System = strings.Repeat("You do it. ", 1000)
	loop.Model = &small{t: t, window: 1 << 20, bytes: 4, turns: 3}
	report, err := loop.Run(t.Context(), b.job)
	if err != nil || !strings.Contains(report.Error, "the conversation does not fit into the context window of the model: it takes about") {
		t.Errorf("%+v %v", report, err)
	}
}
