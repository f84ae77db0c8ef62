package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

func TestReasons(t *testing.T) {
	for reason, want := range map[string]model.Reason{
		"end_turn": model.Done, "stop_sequence": model.Done, "pause_turn": model.Done, "tool_use": model.ForTools,
		"max_tokens": model.Length, "model_context_window_exceeded": model.Length, "refusal": model.Refusal,
	} {
		var a answer
		for _, text := range []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1,"cache_read_input_tokens":3}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":9}}`,
			`{"type":"something_new"}`,
			`{"type":"message_stop"}`,
		} {
			var e event
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			if err := a.take(e); err != nil {
				t.Fatal(err)
			}
		}
		if end := a.end(); !a.stopped || end != (model.End{Reason: want, Usage: provider.Usage{InputTokens: 7, OutputTokens: 9, CacheReadTokens: 3}}) {
			t.Errorf("%s: %+v", reason, end)
		}
	}
}
