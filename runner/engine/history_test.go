package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
	"pgregory.net/rapid"
)

// scanned returns the numbers of the events that a scan of the whole journal finds. runsAgain reports
// whether a retry of the first path runs the second again.
func scanned(events []event.Event, runsAgain func(retried, path string) bool, wanted func(e event.Event) bool) (found []int64) {
	kept := slices.Clone(events)
	for _, e := range events {
		r := event.As[event.Resumed](e)
		if e.Type != event.SessionResumed || !r.From {
			continue
		}
		start := slices.IndexFunc(kept, func(old event.Event) bool {
			return old.Seq < e.Seq && old.Type == event.StepStarted && runsAgain(r.Retry, old.Path)
		})
		if start < 0 {
			continue
		}
		first := kept[start].Seq
		kept = slices.DeleteFunc(kept, func(old event.Event) bool { return old.Path != "" && first <= old.Seq && old.Seq < e.Seq })
	}
	for _, e := range kept {
		if wanted(e) {
			found = append(found, e.Seq)
		}
	}
	return found
}

func seqs(events []event.Event) (all []int64) {
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

// A history that grows with the journal gives the same results as a scan of the whole journal, after any
// retries.
func TestHistoryIsAScan(t *testing.T) {
	paths := []string{"a#1", "a#2", "l[1]/b#1", "l[2]/b#1", "l[10]/b#1", "l#2[1]/b#1", "c#1"}
	again := map[string][]string{
		"a#1": {"a#1"}, "a#2": {"a#2"}, "c#1": {"c#1"}, "l[2]/b#1": {"l[2]/b#1"}, "none#1": nil, "l#2[1]/": {"l#2[1]/b#1"},
		"l[1]/": {"l[1]/b#1", "l[2]/b#1", "l[10]/b#1"}, "l[2]/": {"l[2]/b#1", "l[10]/b#1"},
	}
	runsAgain := func(retried, path string) bool { return slices.Contains(again[retried], path) }
	rapid.Check(t, func(t *rapid.T) {
		p, h := &paper{}, &engine.History{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			typ := rapid.SampledFrom([]event.Type{
				event.StepStarted, event.StepStarted, event.StepCompleted, event.AgentTool, event.TaskClosed, event.SessionResumed,
			}).Draw(t, "type")
			e, data := event.Event{Type: typ}, any(nil)
			switch typ {
			case event.SessionResumed:
				retried := rapid.SampledFrom([]string{"", "a#1", "a#2", "c#1", "l[1]/", "l[2]/", "l[2]/b#1", "l#2[1]/", "none#1"}).Draw(t, "retry")
				data = event.Resumed{Retry: retried, From: retried != "" && rapid.Bool().Draw(t, "from")}
			case event.TaskClosed:
			default:
				e.Path = rapid.SampledFrom(paths).Draw(t, "path")
			}
			if err := p.Append(e, data); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "read") {
				h.Read(p.Events())
			}
		}
		h.Read(p.Events())
		for _, path := range paths {
			want := scanned(p.events, runsAgain, func(e event.Event) bool {
				return e.Path == path && (e.Type == event.StepStarted || e.Type == event.AgentTool)
			})
			if got := seqs(h.At(path, event.AgentTool, event.StepStarted)); !slices.Equal(got, want) {
				t.Fatalf("at %s: %v, want %v", path, got, want)
			}
			leaf, _, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], "#")
			leaf = path[:strings.LastIndex(path, "/")+1] + leaf + "#"
			want = scanned(p.events, runsAgain, func(e event.Event) bool {
				return e.Type == event.StepStarted && strings.HasPrefix(e.Path, leaf)
			})
			if got := seqs(h.Starts(path)); !slices.Equal(got, want) {
				t.Fatalf("starts of %s: %v, want %v", path, got, want)
			}
		}
		if got, want := len(h.All(event.TaskClosed, event.StepCompleted)), len(slices.DeleteFunc(p.Events(), func(e event.Event) bool {
			return e.Type != event.TaskClosed && e.Type != event.StepCompleted
		})); got != want {
			t.Fatalf("all: %d, want %d", got, want)
		}
	})
}
