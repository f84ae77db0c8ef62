package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

func changed(severity, text string) *event.RepositoryChange {
	c := &event.RepositoryChange{Severity: severity, Changes: []event.Changed{{Severity: severity, Text: text}}}
	if severity != event.SeverityNoted {
		c.Rescue = "refs/coven/rescue/t-1/1"
	}
	return c
}

const (
	hookAdded  = "the repository changed during the step: hook hooks/a was added"
	fileEdited = "the repository changed during the step: file a.go was changed"
)

// touched returns the number of operations on the worktree.
func (f *fakeWorkspace) touched() int { return len(f.notes) + len(f.restored) + len(f.messages) }

// Everything that runs programs is watched, and a change that stops the step ends it before the worktree is
// used again.
func TestStoppedLeaves(t *testing.T) {
	review := engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Round: 1, Reviewers: []engine.Reviewer{{Name: "r", Plugin: "r"}}}}
	checks := engine.Call{Path: "c#1", Step: "c", Script: &engine.ScriptInput{Checks: check.Of("test", "lint")}}
	arbiter := engine.Call{Path: "a#1", Step: "a", Arbiter: &engine.ArbiterInput{Arbiter: engine.Reviewer{Name: "a", Plugin: "a"}}}
	resolve := agentCall("m#1")
	resolve.Agent.Resolve = true
	for name, tt := range map[string]struct {
		call    engine.Call
		touched int // snapshots before the programs run
	}{
		"agent":   {agentCall("w#1"), 1},
		"resolve": {resolve, 2},
		"script":  {scriptCall("make"), 1},
		"checks":  {checks, 2},
		"review":  {review, 2},
		"arbiter": {arbiter, 2},
		"merge":   {mergeCall(engine.MergeInput{Checks: check.Of("test")}), 2},
	} {
		w := newWorld()
		w.landing.target = "theirs"
		w.agents.next = append(w.agents.next, says("Done."))
		w.reviewers.reviews["r"] = reviewer.Review{Verdict: reviewer.Pass}
		w.workspace.changes = append(w.workspace.changes, changed(event.SeverityStops, "hook hooks/a was added"))
		r, err := w.executor().Do(t.Context(), tt.call)
		if err != nil || r.OK || r.ErrorType != event.ErrorRepository || r.Error != hookAdded || r.Rescue != "refs/coven/rescue/t-1/1" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if w.workspace.watches != "wcd" || w.count(event.RepositoryChanged) != 1 || len(w.commands.ran) > 1 || len(w.landing.landed) > 0 {
			t.Errorf("%s: watched %s, recorded %d, ran %q", name, w.workspace.watches, w.count(event.RepositoryChanged), w.commands.ran)
		}
		if w.workspace.touched() != tt.touched || w.count(event.StepParked) != 0 || w.workspace.putTip != "" {
			t.Errorf("%s: snapshots %q, restored %q, committed %q", name, w.workspace.notes, w.workspace.restored, w.workspace.messages)
		}
	}
}

// Changes that do not stop the step are only recorded.
func TestNotedChanges(t *testing.T) {
	w := newWorld()
	w.workspace.changes = append(w.workspace.changes, changed(event.SeverityNoted, "tag v1 was added"))
	r, err := w.executor().Do(t.Context(), scriptCall("make"))
	if err != nil || !r.OK || w.count(event.RepositoryChanged) != 1 || w.workspace.watches != "wcd" {
		t.Errorf("%+v, %v, watched %s", r, err, w.workspace.watches)
	}
}

// A stop ends the run regardless of the grimoire's handling of failures. When a person resumes, the step
// continues: a finished agent does not run again, and its work is committed.
func TestStopEndsTheRun(t *testing.T) {
	for name, plan := range map[string]string{
		"on_fail continue": "- {name: work, type: agent, prompt: \"Do\\nit.\", retries: 2, on_fail: continue}\n",
		"on_fail fail":     "- {name: work, type: agent, prompt: \"Do\\nit.\", on_fail: fail}\n",
		"loop":             "- {name: all, type: loop, max_iterations: 3, on_max_iterations: continue, steps: [{name: work, type: agent, prompt: \"Do\\nit.\"}, {name: t, type: script, command: make, on_success: exit_loop}]}\n",
		"timeout":          "- {name: work, type: agent, prompt: \"Do\\nit.\", timeout: 1h}\n",
	} {
		w := newWorld()
		w.agents.next = append(w.agents.next, says("Made it."))
		w.workspace.changes = append(w.workspace.changes, changed(event.SeverityStops, "hook hooks/a was added"))
		r := w.runner(t, plan+land)
		r.Executor.Approve = "--auto-approve"
		got, err := r.Run(t.Context())
		want := "coven rescue show refs/coven/rescue/t-1/1, then coven resume t-1"
		if err != nil || got.Status != event.StatusBlocked || got.Detail != hookAdded || got.Next != want || len(w.agents.runs) != 1 {
			t.Errorf("%s: %+v, %v, %d runs", name, got, err, len(w.agents.runs))
		}
		_ = w.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: got.Step})
		w.agents.recalled, w.agents.complete = driver.Report{Started: true, Text: "Made it."}, true
		r = w.runner(t, plan+land)
		r.Executor.Approve = "--auto-approve"
		got, err = r.Run(t.Context())
		if err != nil || got.Status != event.StatusCompleted || len(w.agents.runs) != 1 || len(w.workspace.restored) != 0 {
			t.Errorf("%s resumed: %+v, %v, %d runs, restored %q", name, got, err, len(w.agents.runs), w.workspace.restored)
		}
	}
}

// If the repository changed while an agent resolved a conflict, the run also ends.
func TestStopInResolve(t *testing.T) {
	w := newWorld()
	w.landing.err, w.landing.target = &ConflictError{Target: "main", Files: []string{"a.go"}, Dir: "/w"}, "theirs"
	w.agents.next = append(w.agents.next, says("Solved."))
	w.workspace.changes = append(w.workspace.changes, changed(event.SeverityStops, "hook hooks/a was added"))
	got, err := w.runner(t, "- {name: land, type: merge, on_conflict: agent}\n").Run(t.Context())
	if err != nil || got.Status != event.StatusBlocked || got.Detail != hookAdded || len(w.agents.runs) != 1 {
		t.Errorf("%+v, %v, %d runs", got, err, len(w.agents.runs))
	}
}

// A stop that was hidden by an interruption ends the first step after it, once.
func TestStopAfterInterruption(t *testing.T) {
	w := newWorld()
	ctx, stop := context.WithCancelCause(t.Context())
	w.commands.does = func(Command) (Ran, error) {
		stop(ErrInterrupted)
		return Ran{}, ctx.Err()
	}
	w.workspace.changes = append(w.workspace.changes, changed(event.SeverityStops, "hook hooks/a was added"))
	w.workspace.tree = "half"
	if _, err := w.executor().Do(ctx, scriptCall("make")); !errors.Is(err, ErrInterrupted) || w.count(event.StepParked) != 0 || w.workspace.touched() != 1 {
		t.Fatalf("%v, parked %d", err, w.count(event.StepParked))
	}
	do := func() event.Result {
		t.Helper()
		r, err := Recorded(NewJournal(w), w.executor()).Do(t.Context(), scriptCall("make"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	w.commands.does = nil
	if r := do(); r.ErrorType != event.ErrorRepository || len(w.commands.ran) != 1 {
		t.Errorf("%+v, ran %q", r, w.commands.ran)
	}
	_ = w.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: "s#1"})
	w.workspace.tree = "a person's"
	if r := do(); !r.OK || len(w.commands.ran) != 2 || !slices.Equal(w.workspace.restored, []string{snapshotOf + "half"}) {
		t.Errorf("%+v, ran %q, restored %q", r, w.commands.ran, w.workspace.restored)
	}
}

// The changes of a check that was stopped in a landing are reverted when the landing runs again.
func TestStoppedCheck(t *testing.T) {
	w := newWorld()
	w.workspace.changes = append(w.workspace.changes, changed(event.SeverityStops, "hook hooks/a was added"))
	call := mergeCall(engine.MergeInput{Checks: check.Of("test")})
	if _, err := Recorded(NewJournal(w), w.executor()).Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(w.Append(event.Event{Type: event.SessionBlocked}, nil), w.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: call.Path}))
	w.workspace.tree = "what the check left"
	r, err := Recorded(NewJournal(w), w.executor()).Do(t.Context(), call)
	if err != nil || !r.OK || !slices.Equal(w.workspace.restored, []string{snapshotOf + "t1"}) {
		t.Errorf("%+v, %v, restored %q", r, err, w.workspace.restored)
	}
}

// Files that changed during a step hold the landing until a person approves it afterwards.
func TestChangeHoldsLanding(t *testing.T) {
	w := newWorld()
	x := w.executor()
	x.Approve = "--auto-approve"
	_ = w.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Patch: "p1", Tree: "t1", Approved: true})
	w.workspace.changes = append(w.workspace.changes, changed(event.SeverityHolds, "file a.go was changed"), changed(event.SeverityHolds, "file a.go was changed"))
	for range 2 {
		if r, err := x.Do(t.Context(), scriptCall("make")); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	call, wait := mergeCall(engine.MergeInput{Strategy: "squash"}), (*Wait)(nil)
	for range 2 {
		_, err := x.Do(t.Context(), call)
		if !errors.As(err, &wait) || !strings.HasPrefix(wait.Detail, fileEdited+" (to see them: ") || wait.Next != "approve" || w.count(event.ReviewAsked) != 1 {
			t.Fatalf("%v, asked %d times", err, w.count(event.ReviewAsked))
		}
	}
	_ = w.Append(event.Event{Type: event.ReviewAnswered, Path: call.Path}, event.MergeDecision{Patch: "p1", Tree: "t1", Approved: true, By: "me"})
	if r, err := x.Do(t.Context(), call); err != nil || !r.OK || len(w.landing.landed) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	again := call
	again.Path = "land2#1"
	if r, err := x.Do(t.Context(), again); err != nil || !r.OK || len(w.landing.landed) != 2 {
		t.Errorf("a later landing: %+v, %v", r, err)
	}
}
