package runner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

func checksCall(checks ...check.Check) engine.Call {
	return engine.Call{Path: "tests#1", Step: "tests", Script: &engine.ScriptInput{Checks: checks}}
}

// A check that fails while checks of other tasks run is run once more, alone, and this result counts.
func TestCheckRunsAgainAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		beside []string
		exits  []int
		alone  bool
		failed string // FailedBeside
		passes bool
	}{
		"passes":           {beside: []string{"b"}, exits: []int{0}, passes: true},
		"no other task":    {exits: []int{1, 0}},
		"passes alone":     {beside: []string{"b", "c"}, exits: []int{1, 0}, alone: true, failed: "b, c", passes: true},
		"fails alone, too": {beside: []string{"b"}, exits: []int{1, 2}, alone: true, failed: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.commands.beside = tt.beside
			w.commands.does = func(Command) (Ran, error) { return Ran{ExitCode: tt.exits[len(w.commands.ran)-1]}, nil }
			r, err := w.executor().Do(t.Context(), checksCall(check.Of("make test")...))
			if err != nil || r.OK != tt.passes || len(r.Receipts) != 1 || r.Receipts[0].FailedBeside != tt.failed {
				t.Fatalf("%+v, %v", r, err)
			}
			warned := len(w.warnings()) == 1 && strings.HasPrefix(w.warnings()[0], `check "make test" passed alone, and failed beside `+tt.failed+":")
			if warned != (tt.passes && tt.failed != "") || (len(w.commands.alone) == 1) != tt.alone {
				t.Errorf("warned %q, alone %q", w.warnings(), w.commands.alone)
			}
		})
	}
}

// After a kill between both runs, the check runs once, alone. This holds only for the tree on which it failed.
func TestCheckContinuesAlone(t *testing.T) {
	for tree, want := range map[string]string{"t1": "b", "t0": ""} {
		w := newWorld()
		if err := w.Append(event.Event{Type: event.CheckRepeated, Path: "tests#1"}, event.CheckRepeat{Text: "make test", Tree: tree, Beside: "b"}); err != nil {
			t.Fatal(err)
		}
		r, err := w.executor().Do(t.Context(), checksCall(check.Of("make lint", "make test", "make test")...))
		if err != nil || !r.OK || r.Receipts[1].FailedBeside != want || r.Receipts[2].FailedBeside != "" || !slices.Equal(w.commands.alone, []string{"make test"}) {
			t.Errorf("%+v, %v, alone %q", r, err, w.commands.alone)
		}
	}
}

// While a check waits, the clocks of its step are paused.
func TestCheckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commands.waits = "waits for lock db, held by task b"
		w.commands.does = func(Command) (Ran, error) {
			<-time.After(9 * time.Minute)
			return Ran{}, nil
		}
		ctx, stop := workclock.Limit(t.Context(), 10*time.Minute, context.DeadlineExceeded)
		defer stop()
		r, err := w.executor().Do(ctx, checksCall(check.Check{Run: "make test", Serial: true}))
		if err != nil || !r.OK || len(w.commands.alone) != 1 {
			t.Errorf("%+v, %v, alone %q", r, err, w.commands.alone)
		}
		if events := w.executor().Journal.All(event.CheckWaiting); len(events) != 1 || event.As[event.Text](events[0]).Text != w.commands.waits {
			t.Errorf("recorded %+v", events)
		}
	})
}
