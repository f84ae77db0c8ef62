package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
)

// work, test and land are steps of plans.
const (
	work = "- {name: work, type: agent, prompt: \"Do\\nit.\"}\n"
	test = "- {name: test, type: script, command: make test}\n"
	land = "- {name: land, type: merge, require_review: true}\n"
)

// runner returns a runner in this world for a plan with these steps.
func (w *world) runner(t *testing.T, yaml string) *Runner {
	t.Helper()
	g, err := grimoires.Parse("test.yaml", []byte("name: test\ndescription: a test\nsteps:\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	p, err := grimoires.NewLibrary(t.TempDir(), t.TempDir()).Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Task, p.Model = grimoires.Task{ID: "t-1", Title: "A title"}, "sonnet"
	x := w.executor()
	return &Runner{Task: "t-1", Plan: p, Journal: x.Journal, Tracker: &w.tracker, Claims: &w.claims, Workspace: &w.workspace, Executor: x}
}

// says returns an agent that ends with a message.
func says(text string) func(AgentRun) (driver.Report, error) {
	return func(AgentRun) (driver.Report, error) { return driver.Report{Text: text}, nil }
}

func TestRunCompleted(t *testing.T) {
	w := newWorld()
	w.agents.next = append(w.agents.next, says("Made it."))
	r := w.runner(t, work+test+land)
	r.Executor.Approve = "--auto-approve"
	got, err := r.Run(t.Context())
	if err != nil || got.Status != event.StatusCompleted || got.Commit != "new" || got.Summary != "Made it." || got.Next != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := []string{"close new: Made it."}; !slices.Equal(w.tracker.calls, want) {
		t.Errorf("tracker calls %q", w.tracker.calls)
	}
	if w.claims.held || !slices.Equal(w.workspace.left, []string{"tip"}) || w.landing.messages[0] != "A title\n\nMade it." {
		t.Errorf("claim held: %v; worktree left with %q; message %q", w.claims.held, w.workspace.left, w.landing.messages)
	}
	var ended event.Ended
	if kind := w.last(t, &ended); kind != event.SessionCompleted || ended.Commit != "new" {
		t.Errorf("recorded last: %s %+v", kind, ended)
	}
}

func TestRunWithoutChange(t *testing.T) {
	w := newWorld()
	w.agents.next, w.landing.candidate.Patch = append(w.agents.next, says("Nothing to do.")), ""
	got, err := w.runner(t, work+land).Run(t.Context())
	if err != nil || got.Status != event.StatusCompleted || got.Commit != "" || !slices.Equal(w.tracker.calls, []string{"release"}) || w.count(event.TaskReleased) != 1 {
		t.Errorf("%+v, %v, tracker calls %q", got, err, w.tracker.calls)
	}
}

func TestRunBlockedAndFailed(t *testing.T) {
	failing := "- {name: test, type: script, command: make test, on_fail: fail}\n"
	for _, tt := range []struct {
		steps  string
		status event.Status
		kind   event.Type
		next   string
	}{
		{test, event.StatusBlocked, event.SessionBlocked, "coven resume t-1"},
		{failing, event.StatusFailed, event.SessionFailed, "coven retry t-1"},
	} {
		w := newWorld()
		w.commands.exits["make test"] = 2
		got, err := w.runner(t, tt.steps+land).Run(t.Context())
		if err != nil || got.Status != tt.status || got.Next != tt.next || got.Step != "test#1" || !strings.Contains(got.Detail, "exit code 2") {
			t.Errorf("%+v, %v", got, err)
		}
		told := []string{"block: coven: " + string(tt.status) + " at test#1: the command ended with exit code 2"}
		if !slices.Equal(w.tracker.calls, told) || !w.claims.held || len(w.workspace.left) != 0 || len(w.landing.landed) != 0 {
			t.Errorf("tracker calls %q, claim held: %v, worktree left: %q", w.tracker.calls, w.claims.held, w.workspace.left)
		}
		if kind := w.last(t, &event.Ended{}); kind != tt.kind {
			t.Errorf("recorded last: %s", kind)
		}
	}
}

// A waiting session keeps its claim and worktree, and lands when it resumes with an approval.
func TestRunWaitingAndResumed(t *testing.T) {
	w := newWorld()
	w.agents.next = append(w.agents.next, says("Made it."))
	r := w.runner(t, work+land)
	got, err := r.Run(t.Context())
	if err != nil || got.Status != event.StatusWaiting || got.Reason != "review" || got.Next != "coven approve t-1" || got.Commit != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	var waiting event.Waiting
	if kind := w.last(t, &waiting); kind != event.SessionWaiting || waiting.Reason != "review" || waiting.Step != "land#1" || len(w.tracker.calls) != 0 || !w.claims.held {
		t.Errorf("recorded last: %s %+v, tracker calls %q", kind, waiting, w.tracker.calls)
	}
	if err := w.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Patch: "p1", Approved: true, By: "dana"}); err != nil {
		t.Fatal(err)
	}
	got, err = w.runner(t, work+land).Run(t.Context())
	if err != nil || got.Status != event.StatusCompleted || got.Commit != "new" || len(w.agents.runs) != 1 {
		t.Errorf("%+v, %v after %d runs of an agent", got, err, len(w.agents.runs))
	}
}

// A wait for a budget is also noted in the task. A wait for a limit has a time, and releases a task whose agent has not begun.
func TestRunWaitingForBudgetOrLimit(t *testing.T) {
	w := newWorld()
	w.agents.next = append(w.agents.next, uses(event.Usage{Turns: 3}))
	got, err := w.runner(t, "- {name: work, type: agent, prompt: \"Do\\nit.\", budget: {turns: 2}}\n").Run(t.Context())
	if err != nil || got.Status != event.StatusWaiting || got.Reason != "budget" || got.Next != "coven resume t-1 --budget turns=+3" {
		t.Errorf("%+v, %v", got, err)
	}
	if len(w.tracker.calls) != 1 || !strings.HasPrefix(w.tracker.calls[0], "note: coven: waiting (budget) at work#1: the budget of step work is spent") {
		t.Errorf("tracker calls %q", w.tracker.calls)
	}
	w, until := newWorld(), time.Unix(1e9, 0)
	w.agents.limit = &Wait{Reason: "limit", Detail: "too many requests", Next: "resume", Until: until}
	got, err = w.runner(t, work).Run(t.Context())
	if err != nil || got.Reason != "limit" || !got.Until.Equal(until) || !slices.Equal(w.tracker.calls, []string{"release"}) {
		t.Errorf("%+v, %v, tracker calls %q", got, err, w.tracker.calls)
	}
}

func TestRunInterruptedAndResumed(t *testing.T) {
	for cause, want := range map[error]Outcome{
		ErrInterrupted: {Status: event.StatusInterrupted, Next: "coven resume t-1"},
		ErrCancelled:   {Status: event.StatusCancelled, Next: "coven cancel t-1"},
	} {
		w := newWorld()
		ctx, stop := context.WithCancelCause(t.Context())
		w.agents.next = append(w.agents.next, says("Made it."), func(AgentRun) (driver.Report, error) {
			stop(cause)
			return driver.Report{}, ctx.Err()
		})
		more := "- {name: more, type: agent, prompt: \"Do\\nmore.\"}\n"
		got, err := w.runner(t, work+more+land).Run(ctx)
		if err != nil || got.Status != want.Status || got.Next != want.Next || got.Step != "more#1" {
			t.Fatalf("%+v, %v", got, err)
		}
		if kind := w.last(t, &event.Ended{}); kind != event.SessionStopped || len(w.tracker.calls) != 0 || !w.claims.held {
			t.Errorf("recorded last: %s, tracker calls %q, claim held: %v", kind, w.tracker.calls, w.claims.held)
		}
		if errors.Is(cause, ErrCancelled) {
			continue // the cancelling command takes over the session
		}
		w.agents.next = append(w.agents.next, says("More."))
		r := w.runner(t, work+more+land)
		r.Executor.Approve = "--auto-approve"
		if got, err = r.Run(t.Context()); err != nil || got.Status != event.StatusCompleted || got.Summary != "Made it." || len(w.agents.runs) != 3 {
			t.Errorf("%+v, %v after %d runs", got, err, len(w.agents.runs))
		}
	}
}

// If the machinery breaks, the session stops and records the reason.
func TestRunBroken(t *testing.T) {
	broken := errors.New("no space left on device")
	for name, breaks := range map[string]func(w *world){
		"claim":    func(w *world) { w.claims.err = broken },
		"worktree": func(w *world) { w.workspace.err = broken },
		"agent":    func(w *world) { w.agents.err = broken },
		"landing":  func(w *world) { w.agents.next, w.landing.err = append(w.agents.next, says("Made it.")), broken },
		"tracker": func(w *world) {
			w.agents.next, w.landing.candidate.Patch, w.tracker.err = append(w.agents.next, says("Done.")), "", broken
		},
	} {
		w := newWorld()
		breaks(w)
		got, err := w.runner(t, work+land).Run(t.Context())
		var ended event.Ended
		if kind := w.last(t, &ended); !errors.Is(err, broken) || got != (Outcome{}) || kind != event.SessionStopped || ended.Reason != broken.Error() || ended.Next != "coven resume t-1" {
			t.Errorf("%s: %+v, %v; recorded %s %+v", name, got, err, kind, ended)
		}
	}
}

// A session that was interrupted after it closed its task completes without a worktree, and does not record
// the closing again.
func TestRunResumedAfterClose(t *testing.T) {
	w := newWorld()
	w.agents.next = append(w.agents.next, says("Made it."))
	r := w.runner(t, work+land)
	r.Executor.Approve = "--auto-approve"
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := slices.IndexFunc(w.events, func(e event.Event) bool { return e.Type == event.TaskClosed })
	w.events, w.workspace.entered, w.workspace.left = w.events[:end+1], 0, nil
	got, err := w.runner(t, work+land).Run(t.Context())
	if err != nil || got.Status != event.StatusCompleted || got.Commit != "new" {
		t.Fatalf("%+v, %v", got, err)
	}
	if w.workspace.entered != 0 || len(w.workspace.left) != 1 || w.count(event.TaskClosed) != 1 || w.count(event.SessionCompleted) != 1 {
		t.Errorf("entered %d times, left %d times, closed %d times", w.workspace.entered, len(w.workspace.left), w.count(event.TaskClosed))
	}
}

// A skipped step is recorded once, even if the session runs several times.
func TestRunRecordsSkippedStepOnce(t *testing.T) {
	w := newWorld()
	skipped := "- {name: test, type: script, command: make test, when: \"false\"}\n"
	for range 2 {
		if _, err := w.runner(t, skipped+land).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count(event.StepSkipped); n != 1 || len(w.commands.ran) != 0 {
		t.Errorf("recorded %d times, ran %q", n, w.commands.ran)
	}
}
