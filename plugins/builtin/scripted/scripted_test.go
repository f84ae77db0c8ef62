package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

const reading = `
conversations:
- match: reviewer.*look
  model: opus
  turns: [{text: never}]
- match: reviewer.*look
  turns:
    - reasoning: first the file
      text: I look.
      tools:
        - {name: read, input: {path: a.txt}}
        - {name: list_notes}
    - expect: content of a.*nothing
      text: Done it.
      usage: {input: 7, output: 2, cache_read: 3, cache_write: 1, usd: 0.5}
- match: repeats
  again: interrupted
  turns: [{tools: [{name: a}]}, {tools: [{name: b}]}, {text: end}]
- match: limited
  turns: [{limit: {reason: rate_limit, after: 90s}}]
- match: broken
  turns: [{fail: no route}]
- match: stalls
  turns: [{stall: true}]
- match: cut
  turns: [{text: and then, reason: length}]
`

func play(t *testing.T, ctx context.Context, request model.Request) (events []model.Event, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(reading), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Model{Getenv: func(name string) string { return map[string]string{Variable: file}[name] }}
	err = m.Turn(ctx, request, func(e model.Event) error { events = append(events, e); return nil })
	return events, err
}

func says(text string) model.Message {
	return model.Message{Role: model.User, Parts: []model.Part{model.Text{Text: text}}}
}

func TestTurns(t *testing.T) {
	request := model.Request{System: "You are a reviewer.", Messages: []model.Message{says("Please look.")}}
	events, err := play(t, t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	read := provider.ToolCall{ID: "call_1_1", Name: "read", Input: json.RawMessage(`{"path":"a.txt"}`)}
	list := provider.ToolCall{ID: "call_1_2", Name: "list_notes", Input: json.RawMessage(`{}`)}
	want := []model.Event{
		model.Reasoning{Text: "first the file", Signature: "scripted"},
		model.Text{Text: "I "},
		model.Text{Text: "look."},
		read, list,
		model.End{Reason: model.ForTools, Usage: provider.Usage{InputTokens: 8, OutputTokens: 6}},
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("%#v", events)
	}
	request.Messages = append(request.Messages,
		model.Message{Role: model.Assistant, Parts: []model.Part{model.Text{Text: "I look."}, read, list}},
		model.Message{Role: model.User, Parts: []model.Part{provider.ToolResult{ID: "call_1_1", Text: "content of a"}, provider.ToolResult{ID: "call_1_2", Text: "nothing"}}})
	events, err = play(t, t.Context(), request)
	want = []model.Event{
		model.Text{Text: "Done "},
		model.Text{Text: "it."},
		model.End{Reason: model.Done, Usage: provider.Usage{InputTokens: 7, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 1, CostUSD: 0.5}},
	}
	if err != nil || !reflect.DeepEqual(events, want) {
		t.Errorf("%#v %v", events, err)
	}
	request.Messages = append([]model.Message{says("Please look. (Much is missing here.)")}, request.Messages[1:]...)
	if again, err := play(t, t.Context(), request); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("without its beginning: %#v %v", again, err)
	}
	request.Messages = append(request.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{model.Text{Text: "Done it."}}}, says("And?"))
	if _, err := play(t, t.Context(), request); err == nil || !strings.Contains(err.Error(), "the script has 2 turns for this conversation, and this would be turn 3") {
		t.Error(err)
	}
}

// A turn is repeated after an interruption.
func TestAgain(t *testing.T) {
	request := model.Request{Messages: []model.Message{says("repeats")}}
	var played []string
	for _, result := range []string{"interrupted", "fine", "was interrupted", "interrupted", "fine"} {
		events, err := play(t, t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		call := events[0].(provider.ToolCall)
		played = append(played, call.Name)
		request.Messages = append(request.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{call}},
			model.Message{Role: model.User, Parts: []model.Part{provider.ToolResult{ID: call.ID, Text: result}}})
	}
	if got := strings.Join(played, " "); got != "a a b b b" {
		t.Error(got)
	}
}

func TestFaults(t *testing.T) {
	for first, want := range map[string]string{
		"broken":           "turn 1: no route",
		"who":              "the script has no conversation that begins with:\n\nwho",
		"a reviewer looks": "the script expects content of a.*nothing, and the model was sent:\nsurprise",
	} {
		request := model.Request{Messages: []model.Message{says(first)}}
		if strings.Contains(first, "reviewer") {
			call := provider.ToolCall{ID: "call_1_1", Name: "read", Input: json.RawMessage(`{}`)}
			request.Messages = append(request.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{call}}, says("surprise"))
		}
		if events, err := play(t, t.Context(), request); err == nil || !strings.Contains(err.Error(), want) || len(events) > 0 {
			t.Errorf("%s: %v %v", first, events, err)
		}
	}
	events, err := play(t, t.Context(), model.Request{Messages: []model.Message{says("limited")}})
	if want := []model.Event{provider.Limit{Reason: "rate_limit", Status: 429, After: 90 * time.Second}, model.End{Reason: model.Limited}}; err != nil || !reflect.DeepEqual(events, want) {
		t.Errorf("%#v %v", events, err)
	}
	events, err = play(t, t.Context(), model.Request{Messages: []model.Message{says("cut")}})
	if err != nil || events[len(events)-1].(model.End).Reason != model.Length {
		t.Errorf("%#v %v", events, err)
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := play(t, ctx, model.Request{Messages: []model.Message{says("stalls")}}); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestWrongScripts(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "the script has no conversations",
		"conversations: [{turn: []}]":            "line 1: field turn not found",
		"conversations: [{match: '['}]":          "line 1: error parsing regexp",
		"conversations: [{turns: [{tools: x}]}]": "line 1: cannot unmarshal",
		"conversations: [{turns: [{limit: {after: soon}}]}]": `line 1: time: invalid duration "soon"`,
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for value, want := range map[string]string{"": "COVEN_SCRIPT must be the path of one", t.TempDir(): "is not a file", "/nowhere/x": "read the script"} {
		m := Model{Getenv: func(string) string { return value }}
		if err := m.Turn(t.Context(), model.Request{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
