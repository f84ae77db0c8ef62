package runner

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

// A script uses only time: it runs even if the turns of its budget are spent.
func TestScriptUsesOnlyTime(t *testing.T) {
	w, wait := newWorld(), (*Wait)(nil)
	_ = w.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, event.Result{Used: budget.Amount{Turns: 5, Wall: time.Minute}})
	call := scriptCall("make")
	call.Budgets = []engine.StepBudget{{Max: budget.Amount{Turns: 5, Wall: time.Hour}}}
	if r, err := w.executor().Do(t.Context(), call); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := w.executor().Do(t.Context(), agentCall("b#1", call.Budgets...)); !errors.As(err, &wait) || wait.More != "turns=+5" {
		t.Errorf("an agent: %v", err)
	}
	call.Budgets[0].Max.Wall = time.Minute
	if _, err := w.executor().Do(t.Context(), call); !errors.As(err, &wait) || wait.Detail != "the budget of the run is spent: 1m0s of 1m0s at work" {
		t.Errorf("a script without time: %v", err)
	}
	w.commands.ran = nil
	x := w.executor()
	x.Budget = budget.New(budget.Amount{Turns: 5, Wall: time.Hour})
	x.Budget.Use(budget.Amount{Turns: 5})
	if _, err := x.Do(t.Context(), scriptCall("make")); err != nil {
		t.Errorf("a script after the turns of the shared budget: %v", err)
	}
	x.Budget.Use(budget.Amount{Wall: time.Hour})
	if _, err := x.Do(t.Context(), scriptCall("make")); !errors.As(err, &wait) || len(w.commands.ran) != 1 {
		t.Errorf("a script after the time of the shared budget: %v", err)
	}
}

// A leaf stops when it and earlier leaves have used up the time of a budget. The time counts toward the
// budget that tasks share.
func TestTimeOfABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, own := range []bool{true, false} {
			w, wait := newWorld(), (*Wait)(nil)
			_ = w.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, event.Result{Used: budget.Amount{Wall: 40 * time.Minute}})
			x, call := w.executor(), scriptCall("make")
			if own {
				call.Budgets = []engine.StepBudget{{Max: budget.Amount{Wall: time.Hour}}}
			} else {
				x.Budget = budget.New(budget.Amount{Wall: time.Hour})
				x.Budget.Use(budget.Amount{Wall: 40 * time.Minute})
			}
			w.commands.does = func(Command) (Ran, error) {
				<-time.After(15 * time.Minute)
				return Ran{}, nil
			}
			if _, err := Recorded(x.Journal, x).Do(t.Context(), call); err != nil {
				t.Errorf("%d minutes are left: %v", 20, err)
			}
			w.commands.hangs, call.Path = true, "t#1"
			start := time.Now()
			_, err := x.Do(t.Context(), call)
			if took := time.Since(start); !errors.As(err, &wait) || took != 5*time.Minute {
				t.Errorf("own budget %v: %v after %s", own, err, took)
			}
		}
	})
}

// The usage of a leaf includes its interrupted runs and, for a review, the agents that its plugins asked
// for.
func TestUsageInResult(t *testing.T) {
	w := newWorld()
	w.started("a#1", "t1")
	_ = w.Append(event.Event{Type: event.AgentStarted, Path: "a#1"}, event.AgentStart{Conversation: "c"})
	_ = w.Append(event.Event{Type: event.AgentUsage, Path: "a#1"}, event.Usage{Turns: 3})
	w.agents.next = append(w.agents.next, uses(event.Usage{Turns: 2}))
	if r, err := w.executor().Do(t.Context(), agentCall("a#1")); err != nil || r.Used.Turns != 5 {
		t.Errorf("%+v, %v", r.Used, err)
	}
	w = newWorld()
	w.agents.next = append(w.agents.next, func(run AgentRun) (driver.Report, error) {
		used := event.Usage{Turns: 4}
		return driver.Report{Text: "fine", Used: used, Result: provider.Result{Usage: provider.Usage{OutputTokens: 7}}}, run.Spend(used)
	})
	w.reviewers.reviews["agent"], w.reviewers.asks = reviewer.Review{Verdict: reviewer.Pass}, &hostservice.Ask{Prompt: "look"}
	r, err := w.executor().Do(t.Context(), reviewCall("agent"))
	if err != nil || !r.OK || r.Used.Turns != 4 || r.Usage.OutputTokens != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Each reviewer gets its options, its own findings of the previous round, and the round's number.
func TestReviewerInput(t *testing.T) {
	w := newWorld()
	w.reviewers.reviews["lint"], w.reviewers.reviews["agent"] = reviewer.Review{Verdict: reviewer.Pass}, reviewer.Review{Verdict: reviewer.Pass}
	call := reviewCall("lint", "agent")
	call.Review.Round = 2
	call.Review.Reviewers[0].Options = map[string]string{"level": "high"}
	for _, name := range []string{"lint", "agent"} {
		call.Review.Previous = append(call.Review.Previous, arbiter.Opinion{Reviewer: name, Findings: []reviewer.Finding{{Message: "of " + name}}})
	}
	if _, err := w.executor().Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]int{"lint": 1, "agent": 0} {
		got := w.reviewers.given[name]
		if got.Round != 2 || len(got.Options) != options || len(got.Previous) != 1 || got.Previous[0].Message != "of "+name {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
