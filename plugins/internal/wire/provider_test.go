package wire

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/provider"
)

// Every event arrives unchanged.
func TestEventsOnTheWire(t *testing.T) {
	usage := provider.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.25}
	for _, sent := range []provider.Event{
		provider.Started{Conversation: "c", Model: "m", Tools: []string{"Read"}, FailedServers: []string{"coven"}},
		provider.Text{Text: "hello"},
		provider.Reasoning{Text: "hm"},
		provider.ToolCall{ID: "t1", Name: "Read", Input: json.RawMessage(`{"a":1}`)},
		provider.ToolResult{ID: "t1", Text: "x", IsError: true, NeverRan: true},
		provider.Retry{Attempt: 1, MaxAttempts: 10, DelayMS: 500, Status: 529, Reason: "overloaded"},
		provider.Result{OK: true, Text: "done", Error: "e", Limit: true, Status: 429, Turns: 3, Usage: usage},
		provider.Acknowledged{ID: "u1"},
		provider.Spent{ID: "m1", Model: "m", Usage: usage, Done: true, More: true},
		provider.Spent{Next: true},
		provider.Chunk{Text: "hel", Reasoning: true},
		provider.Asked{ID: "7", Calls: []provider.ToolCall{{ID: "t1", Name: provider.CallBash, Input: json.RawMessage(`{"command":"make"}`)}}, Data: []byte("x")},
		provider.Asked{ID: "8", Action: provider.ReadFile{Path: "/a", Line: 2, Limit: 3}},
		provider.Asked{ID: "9", Action: provider.WriteFile{Path: "/a", Content: "b"}},
		provider.Asked{ID: "10", Action: provider.RunCommand{Command: "make", Dir: "/a", MaxOutput: 4}},
		provider.Asked{ID: "11", Action: provider.UseTerminal{ID: "c1", Do: provider.TerminalAwait}},
		provider.Limit{Until: time.Unix(1795280659, 0), Reason: "five_hour", Status: 429},
		provider.Limit{After: 600 * time.Second, Again: 1500 * time.Millisecond, Reason: "rate_limit", Status: 429},
	} {
		bytes, err := proto.Marshal(encodeEvent(sent))
		if err != nil {
			t.Fatal(err)
		}
		var wire pluginv1.Event
		if err := proto.Unmarshal(bytes, &wire); err != nil {
			t.Fatal(err)
		}
		if got := decodeEvent(&wire); !reflect.DeepEqual(got, sent) {
			t.Errorf("sent %+v, got %+v", sent, got)
		}
	}
	if got := decodeEvent(&pluginv1.Event{}); got != nil {
		t.Errorf("an event of a newer plugin arrives as %+v", got)
	}
}
