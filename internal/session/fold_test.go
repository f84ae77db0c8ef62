package session

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/event"
)

// A view that was computed bit by bit is the one that is computed at once.
func TestFoldBitByBit(t *testing.T) {
	data := map[event.Type]any{
		event.SessionResumed: event.Resumed{Holder: "h"}, event.SessionWaiting: event.Waiting{Reason: "review", Next: "coven approve t"},
		event.SessionStopped: event.Ended{}, event.SessionFailed: event.Ended{Reason: "no", Step: "a#1"}, event.SessionCompleted: event.Ended{Summary: "done"},
		event.StepStarted: event.StepStart{Kind: "script"}, event.AgentTool: event.Tool{Summary: "Write x"},
		event.StepCompleted: map[string]any{"ok": true, "receipts": []event.Receipt{{Command: "make"}}, "used": map[string]any{"usd": 1}},
		event.CheckEnded:    event.Receipt{Command: "make"}, event.GateDecided: event.Decision{Tool: "Bash"}, event.Warning: event.Text{Text: "oh"},
		event.AgentStarted: event.AgentStart{}, event.AgentUsage: event.Usage{Input: 10, Model: "sonnet"},
		event.LimitMet: event.Limit{Account: "a"}, event.LimitOver: nil, event.ReviewAsked: event.MergeDecision{Patch: "p"},
		event.ReviewAnswered: event.MergeDecision{Patch: "p", Approved: true}, event.TaskClaimed: event.Claim{Oid: "o"}, event.LandDone: event.Landing{New: "n"},
	}
	var types []event.Type
	for what := range data {
		types = append(types, what)
	}
	rapid.Check(t, func(t *rapid.T) {
		events := []event.Event{{Seq: 1, Type: event.SessionStarted, Task: "t", Time: time.Unix(1, 0), Data: []byte(`{"query":"q"}`)}}
		for n := range rapid.IntRange(0, 30).Draw(t, "events") {
			what := rapid.SampledFrom(types).Draw(t, "type")
			raw, err := json.Marshal(data[what])
			if err != nil {
				t.Fatal(err)
			}
			at := events[n].Time.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
			path := rapid.SampledFrom([]string{"", "a#1", "l[1]/b#1"}).Draw(t, "path")
			events = append(events, event.Event{Seq: int64(n) + 2, Type: what, Task: "t", Path: path, Time: at, Data: raw})
		}
		f := newFolder()
		for n := 0; n <= len(events); n += rapid.IntRange(1, 4).Draw(t, "more") {
			got, err := f.fold(events[:n])
			if err != nil {
				t.Fatal(err)
			}
			want, err := Fold(events[:n])
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d events: %v\ngot  %+v\nwant %+v", n, err, got, want)
			}
		}
	})
}
