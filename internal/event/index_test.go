package event_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/coven-run/coven/internal/event"
)

func numbers(events []event.Event) (all []int64) {
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

// An index gives the same results as a scan, while the journal grows and after reopening it.
func TestIndex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	j := open(t, file)
	if _, ok := j.Last(event.Warning); ok || j.Has(event.Warning) || len(j.Of(event.Warning)) != 0 || j.Since(event.Warning) != nil {
		t.Error("an empty journal has a warning")
	}
	for _, typ := range []event.Type{event.SessionStarted, event.StepStarted, event.Warning, event.SessionResumed, event.StepStarted, event.StepCompleted} {
		must(t, j.Append(event.Event{Type: typ}, event.Text{}))
	}
	check := func() {
		t.Helper()
		if got := numbers(j.Of(event.StepStarted)); !slices.Equal(got, []int64{2, 5}) {
			t.Errorf("steps: %v", got)
		}
		if got := numbers(j.Of(event.SessionResumed, event.SessionStarted, event.LandDone)); !slices.Equal(got, []int64{1, 4}) {
			t.Errorf("starts: %v", got)
		}
		if got := numbers(j.Since(event.SessionStarted, event.SessionResumed)); !slices.Equal(got, []int64{4, 5, 6}) {
			t.Errorf("since the last start: %v", got)
		}
		if e, ok := j.Last(event.SessionStarted, event.Warning); !ok || e.Seq != 3 || !j.Has(event.LandDone, event.Warning) || j.Has(event.LandDone) {
			t.Errorf("last: %+v", e)
		}
	}
	check()
	before := j.Since(event.SessionStarted, event.SessionResumed)
	must(t, j.Append(event.Event{Type: event.AgentText}, event.Text{}))
	if len(before) != 3 {
		t.Error("an answer grew")
	}
	must(t, j.Close())
	j = open(t, file)
	defer j.Close() //nolint:errcheck // the test is over
	if got := numbers(j.Since(event.SessionResumed)); !slices.Equal(got, []int64{4, 5, 6, 7}) {
		t.Errorf("opened again: %v", got)
	}
}
