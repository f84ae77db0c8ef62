package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Servers stream answers in different ways. The results are the same.
func TestAnswers(t *testing.T) {
	request := model.Request{System: "Be brief. ", Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text{Text: "Look, will you? It matters."}}}}}
	guess := provider.Usage{InputTokens: 9, OutputTokens: 1} // 37 bytes of input, at most 7 of output
	call := func(id, name, input string) provider.ToolCall {
		return provider.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}
	}
	for name, c := range map[string]struct {
		chunks []string
		want   []model.Event
	}{
		"no usage": {
			[]string{`{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}`},
			[]model.Event{model.Text{Text: "Hello."}, model.End{Reason: model.Done, Usage: guess}},
		},
		"all calls have index 0, and the reason is stop": {
			[]string{
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
			},
			[]model.Event{call("a", "x", `{"n":1}`), call("b", "y", `{}`), model.End{Reason: model.ForTools, Usage: provider.Usage{InputTokens: 3, OutputTokens: 2}}},
		},
		"calls arrive mixed, one without an ID": {
			[]string{
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"total_tokens":1}}`,
			},
			[]model.Event{call("call", "x", `{}`), call("b", "y", `{}`), model.End{Reason: model.ForTools, Usage: provider.Usage{InputTokens: 1}}},
		},
		"arguments that are no JSON": {
			[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{'n':1"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"total_tokens":1}}`},
			[]model.Event{call("a", "x", `"{'n':1"`), model.End{Reason: model.ForTools, Usage: provider.Usage{InputTokens: 1}}},
		},
		"cut off in a call": {
			[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n"}}]},"finish_reason":"length"}]}`},
			[]model.Event{model.End{Reason: model.Length, Usage: guess}},
		},
		"a refusal": {
			[]string{`{"choices":[{"delta":{"refusal":"No, no."},"finish_reason":"stop"}]}`},
			[]model.Event{model.Text{Text: "No, no."}, model.End{Reason: model.Refusal, Usage: guess}},
		},
		"a filter": {
			[]string{`{"choices":[{"delta":{"content":"Well"},"finish_reason":"content_filter"}]}`},
			[]model.Event{model.Text{Text: "Well"}, model.End{Reason: model.Refusal, Usage: guess}},
		},
	} {
		var events []model.Event
		a := answer{emit: func(e model.Event) error { events = append(events, e); return nil }}
		for _, text := range c.chunks {
			var piece chunk
			if err := json.Unmarshal([]byte(text), &piece); err != nil {
				t.Fatal(err)
			}
			if err := a.take(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.finish(request); err != nil || !reflect.DeepEqual(events, c.want) {
			t.Errorf("%s: %v\n got %#v\nwant %#v", name, err, events, c.want)
		}
	}
}
