package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
)

// answer implements leaves that all have the same result and error.
type answer struct {
	result event.Result
	err    error
	calls  []string
}

func (a *answer) Do(_ context.Context, c Call) (event.Result, error) {
	a.calls = append(a.calls, c.Path)
	return a.result, a.err
}

// working is a clock according to which each leaf takes five minutes.
var working = Clock{Measure: func(ctx context.Context) (context.Context, func() time.Duration) {
	return ctx, func() time.Duration { return 5 * time.Minute }
}}

// The record of a result contains the working time, whether the run continued after a failure, and the step
// whose time was up.
func TestRecordedResult(t *testing.T) {
	over := &OverTimeError{Step: "l", Limit: time.Hour, key: "l#1"}
	used := budget.Amount{Turns: 2, Wall: time.Minute}
	for name, tt := range map[string]struct {
		answer    answer
		tolerated bool
		timeIsUp  bool
		want      event.Result
	}{
		"success":               {answer: answer{result: event.Result{OK: true}}, want: event.Result{OK: true}},
		"tolerated success":     {answer: answer{result: event.Result{OK: true}}, tolerated: true, want: event.Result{OK: true}},
		"failure":               {answer: answer{result: event.Result{Error: "no"}}, want: event.Result{Error: "no"}},
		"tolerated failure":     {answer: answer{result: event.Result{Error: "no"}}, tolerated: true, want: event.Result{Error: "no", Tolerated: true}},
		"success after the end": {answer: answer{result: event.Result{OK: true}}, timeIsUp: true, want: event.Result{OK: true}},
		"failure after the end": {answer: answer{result: event.Result{Error: "no"}}, timeIsUp: true, want: event.Result{Error: "no", Over: "l#1"}},
		"interrupted at the end": {
			answer: answer{err: over}, timeIsUp: true,
			want: event.Result{Error: "step l took longer than 1h0m0s", ErrorType: event.ErrorTimeout, Over: "l#1"},
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tt.timeIsUp {
			cancel(over)
		}
		tt.answer.result.Used = used
		var got event.Result
		replay := NewReplay(&History{}, &tt.answer, working, func(_ string, r event.Result) (event.Result, error) {
			got = r
			return r, nil
		})
		_, err := replay.Do(ctx, Call{Path: "s#1", Tolerated: tt.tolerated, Script: &ScriptInput{}})
		wall := got.Used
		if err != nil || got.OK != tt.want.OK || got.Error != tt.want.Error || got.ErrorType != tt.want.ErrorType || got.Over != tt.want.Over || got.Tolerated != tt.want.Tolerated || got.Input == "" {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tt.want)
		}
		if want := (budget.Amount{Turns: 2, Wall: 6 * time.Minute}); wall != want {
			t.Errorf("%s: used %+v, want %+v", name, wall, want)
		}
		cancel(nil)
	}
	broken := errors.New("disk full")
	replay := NewReplay(&History{}, &answer{err: broken}, working, func(string, event.Result) (event.Result, error) {
		t.Error("recorded without a result")
		return event.Result{}, nil
	})
	if _, err := replay.Do(t.Context(), Call{Path: "s#1"}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A retry runs a step again. With From, all later steps also run again. Only time recorded after the last
// retry is charged to the clocks.
func TestRetryFrom(t *testing.T) {
	for name, tt := range map[string]struct {
		retry   *event.Resumed
		runs    string
		charged time.Duration
	}{
		"resumed":             {retry: &event.Resumed{}, charged: 4 * time.Minute},
		"retried":             {retry: &event.Resumed{Retry: "b#1"}, runs: "b#1"},
		"retried from there":  {retry: &event.Resumed{Retry: "b#1", From: true}, runs: "b#1 l[1]/c#1 l[2]/c#1"},
		"from an iteration":   {retry: &event.Resumed{Retry: "l[2]/", From: true}, runs: "l[2]/c#1"},
		"one and later ones":  {retry: &event.Resumed{Retry: "l[1]/"}, runs: "l[1]/c#1 l[2]/c#1"},
		"a step without them": {retry: &event.Resumed{Retry: "x#1", From: true}},
	} {
		paths := []string{"a#1", "b#1", "l[1]/c#1", "l[2]/c#1"}
		var events []event.Event
		add := func(typ event.Type, path string, data any) {
			text, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event.Event{Seq: int64(len(events) + 1), Type: typ, Path: path, Data: text})
		}
		for _, path := range paths {
			hash, err := Call{Path: path}.hash()
			if err != nil {
				t.Fatal(err)
			}
			add(event.StepStarted, path, event.StepStart{})
			add(event.StepCompleted, path, event.Result{OK: true, Input: hash, Used: budget.Amount{Wall: time.Minute}})
		}
		add(event.SessionResumed, "", tt.retry)
		var charged time.Duration
		leaves := &answer{}
		history := &History{}
		history.Read(events)
		replay := NewReplay(history, leaves, Clock{Charge: func(_ context.Context, worked time.Duration) { charged += worked }},
			func(_ string, r event.Result) (event.Result, error) { return r, nil })
		for _, path := range paths {
			if _, err := replay.Do(t.Context(), Call{Path: path}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(leaves.calls, " "); got != tt.runs || charged != tt.charged {
			t.Errorf("%s: ran %q, want %q; charged %s", name, got, tt.runs, charged)
		}
	}
}
