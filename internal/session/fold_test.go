package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Incremental folding returns the same view as folding all events at once.
func TestFoldBitByBit(t *testing.T) {
	data := map[event.Type]any{
		event.SessionResumed: event.Resumed{Holder: "h"}, event.SessionWaiting: event.Waiting{Reason: "review", Next: "coven approve t"},
		event.SessionStopped: event.Ended{}, event.SessionFailed: event.Ended{Reason: "no", Step: "a#1"}, event.SessionCompleted: event.Ended{Summary: "done"},
		event.StepStarted: event.StepStart{Kind: "script"}, event.AgentTool: event.Tool{Summary: "Write x"},
		event.StepCompleted: map[string]any{"ok": true, "receipts": []event.Receipt{{Command: "make"}}, "used": map[string]any{"usd": 1}},
		event.CheckEnded:    event.Receipt{Command: "make"}, event.GateDecided: event.Decision{Tool: "Bash"}, event.Warning: event.Text{Text: "oh"},
		event.RepositoryChanged: event.RepositoryChange{Severity: event.SeverityStops},
		event.AgentStarted:      event.AgentStart{}, event.AgentUsage: event.Usage{Input: 10, Model: "sonnet"},
		event.SpawnQueued:  event.Spawn{ID: "helper-x", Agent: "helper", Queue: event.Queue{Depth: 1}},
		event.SpawnStarted: event.SpawnStart{ID: "helper-x", Agent: "helper", Queue: event.Queue{Current: "helper"}},
		event.SpawnEnded:   event.SpawnEnd{ID: "helper-x", Agent: "helper", Status: event.StatusCompleted, Report: "done"}, event.SpawnRejected: event.SpawnRefusal{Agent: "helper"},
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

// The ID of a subagent is part of a file name: an ID with another path is an error.
func TestSubagentElsewhere(t *testing.T) {
	for id, valid := range map[string]bool{"helper-x": true, "../helper": false, "/helper": false, "a/b": false, "..": false, "": false} {
		raw, err := json.Marshal(event.Spawn{ID: id, Agent: "helper"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Fold([]event.Event{
			{Seq: 1, Type: event.SessionStarted, Task: "t", Data: []byte(`{}`)}, {Seq: 2, Type: event.SpawnQueued, Task: "t", Data: raw},
		})
		if (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Only relevant changes of the repository are warnings of the session.
func TestRepositoryChanged(t *testing.T) {
	events := []event.Event{{Seq: 1, Type: event.SessionStarted, Task: "t", Data: []byte(`{}`)}}
	for _, severity := range []string{event.SeverityNoted, event.SeverityHolds, event.SeverityStops} {
		raw, err := json.Marshal(event.RepositoryChange{
			Severity: severity, Rescue: "refs/coven/rescue/t/1", Changes: []event.Changed{{Severity: severity, Text: severity + " was changed"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Event{Seq: int64(len(events)) + 1, Type: event.RepositoryChanged, Task: "t", Data: raw})
	}
	v, err := Fold(events)
	const end = " was changed (to see them: coven rescue show refs/coven/rescue/t/1)"
	want := []string{"the repository changed during the step: holds" + end, "the repository changed during the step: stops" + end}
	if err != nil || !reflect.DeepEqual(v.Warnings, want) {
		t.Errorf("%v: got %q", err, v.Warnings)
	}
}

// An answer to a waiting session is not lost if the process ends before it continues:
// the session is interrupted.
func TestAnsweredAndKilled(t *testing.T) {
	for name, test := range map[string]struct {
		data   event.MergeDecision
		status event.Status
		next   string
		asked  int
	}{
		"approved": {event.MergeDecision{Patch: "p", Approved: true, By: "dana"}, Interrupted, "coven resume 't 1'", 0},
		"changes":  {event.MergeDecision{Patch: "p", By: "dana", Changes: []reviewer.Finding{{Message: "blue"}}}, Interrupted, "coven resume 't 1'", 1},
		"rejected": {event.MergeDecision{Patch: "p", By: "dana", Reason: "no"}, Waiting, "coven approve 't 1'", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var events []event.Event
			for _, e := range []struct {
				kind event.Type
				data any
			}{
				{event.SessionStarted, event.Session{}},
				{event.ReviewAsked, event.MergeDecision{Patch: "p"}},
				{event.SessionWaiting, event.Waiting{Reason: event.WaitReview, Next: "coven approve 't 1'"}},
				{event.ReviewAnswered, test.data},
			} {
				data, err := json.Marshal(e.data)
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, event.Event{Seq: int64(len(events) + 1), Type: e.kind, Task: "t 1", Path: "land#1", Data: data})
			}
			v, err := Fold(events)
			if err != nil || v.Status != test.status || v.Next != test.next || len(v.Revisions) != test.asked {
				t.Errorf("%s, next %q, %+v, %v", v.Status, v.Next, v.Revisions, err)
			}
		})
	}
}

// The memory that a view takes does not grow with the journal.
func TestLoadTakesLittleMemory(t *testing.T) {
	root := t.TempDir()
	s, err := Create(root, "t", "query", time.Now)
	must(t, err)
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "query"}))
	must(t, s.Append(event.Event{Type: event.SessionCompleted}, event.Ended{}))
	must(t, s.Close())
	file := filepath.Join(s.Dir, eventsFile)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	out := bufio.NewWriter(f)
	const events, size = 400, 100 << 10
	text := strings.Repeat("x", size)
	for i := range events {
		_, err = fmt.Fprintf(out, `{"v":1,"seq":%d,"time":"2026-01-02T03:04:05Z","type":"agent.text","task":"t","session":"s","data":{"text":"%s"}}`+"\n", i+3, text)
		must(t, err)
	}
	must(t, errors.Join(out.Flush(), f.Close()))

	before, most, folder := live(), uint64(0), newFolder()
	must(t, event.Each(file, func(e event.Event) error {
		if e.Seq%50 == 0 {
			most = max(most, live())
		}
		return folder.take(e)
	}))
	if most > before+events*size/4 {
		t.Errorf("%d bytes for a journal of %d", most-before, events*size)
	}
	v, err := Load(s.Dir)
	if err != nil || v.Status != Completed || v.Updated.Year() != 2026 {
		t.Errorf("%+v, %v", v, err)
	}
	started, err := Events(s.Dir, event.SessionStarted)
	if err != nil || len(started) != 1 {
		t.Errorf("%d events, %v", len(started), err)
	}
}

// live returns the size, in bytes, of the memory that is in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
