package provider

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// Every event arrives as it was sent.
func TestEventsOnTheWire(t *testing.T) {
	usage := Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.25}
	for _, sent := range []Event{
		Started{Conversation: "c", Model: "m", Tools: []string{"Read"}, FailedServers: []string{"coven"}},
		Text{Text: "hello"},
		Reasoning{Text: "hm"},
		ToolCall{ID: "t1", Name: "Read", Input: json.RawMessage(`{"a":1}`)},
		ToolResult{ID: "t1", Text: "x", IsError: true, NeverRan: true},
		Retry{Attempt: 1, MaxAttempts: 10, DelayMS: 500, Status: 529, Reason: "overloaded"},
		Result{OK: true, Text: "done", Error: "e", Limit: true, Status: 429, Turns: 3, Usage: usage},
		Heard{ID: "u1"},
		Spent{ID: "m1", Model: "m", Usage: usage, Done: true, More: true},
		Limit{Until: time.Unix(1795280659, 0), Reason: "five_hour", Status: 429},
		Limit{After: 600 * time.Second, Again: 1500 * time.Millisecond, Reason: "rate_limit", Status: 429},
	} {
		bytes, err := proto.Marshal(encode(sent))
		if err != nil {
			t.Fatal(err)
		}
		var wire pluginv1.Event
		if err := proto.Unmarshal(bytes, &wire); err != nil {
			t.Fatal(err)
		}
		if got := decode(&wire); !reflect.DeepEqual(got, sent) {
			t.Errorf("sent %+v, got %+v", sent, got)
		}
	}
	if got := decode(&pluginv1.Event{}); got != nil {
		t.Errorf("an event of a newer plugin arrives as %+v", got)
	}
}

func TestUsageAdd(t *testing.T) {
	u := Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5}
	if got := u.Add(u); got != (Usage{2, 4, 6, 8, 1}) {
		t.Errorf("%+v", got)
	}
}
