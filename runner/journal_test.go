package runner

import (
	"fmt"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Concurrent leaves use one index: each finds its own events, and those that other parts of the program
// append to the journal.
func TestJournalConcurrently(t *testing.T) {
	s := newWorld()
	j := NewJournal(s)
	var leaves sync.WaitGroup
	for n := range 8 {
		path := fmt.Sprintf("leaf%d#1", n)
		leaves.Go(func() {
			for i := 1; i <= 20; i++ {
				to := []interface {
					Append(e event.Event, data any) error
				}{j, s}[i%2]
				if err := to.Append(event.Event{Type: event.AgentTool, Path: path}, event.Tool{ID: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
				last, ok := j.lastAt(path, event.AgentTool)
				if found := j.At(path, event.AgentTool); !ok || len(found) != i || event.As[event.Tool](last).ID != fmt.Sprint(i) {
					t.Errorf("%s: %d of %d events, last %s", path, len(found), i, last.Data)
				}
				_, _ = j.openFindings()
			}
		})
	}
	leaves.Wait()
	if len(j.All(event.AgentTool)) != 160 || j.has(event.TaskClosed) || !j.has(event.TaskClosed, event.AgentTool) {
		t.Errorf("%d events of all leaves", len(j.All(event.AgentTool)))
	}
}

// Findings are open after a review and closed by the next, even if the journal is queried in between.
func TestJournalOpenFindings(t *testing.T) {
	s := newWorld()
	j := NewJournal(s)
	reviewed := func(verdict reviewer.Verdict, found ...reviewer.Finding) int {
		_ = s.Append(event.Event{Type: event.StepStarted, Path: "r#1"}, event.StepStart{Kind: "review"})
		opinion := event.Opinion{Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: verdict, Findings: found}}
		_ = s.Append(event.Event{Type: event.StepCompleted, Path: "r#1"}, event.Result{
			OK: verdict == reviewer.Pass, ErrorType: event.ErrorFindings, Opinions: []event.Opinion{opinion},
		})
		open, err := j.openFindings()
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	if n := reviewed(reviewer.Fail, reviewer.Finding{Severity: reviewer.Error, Message: "leak"}); n != 1 {
		t.Errorf("%d open findings, want 1", n)
	}
	if n := reviewed(reviewer.Pass); n != 0 {
		t.Errorf("%d open findings after a fix, want 0", n)
	}
}
