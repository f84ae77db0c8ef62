package runner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner/engine"
)

// reports returns agents that end with these reports.
func reports(all []driver.Report) (next []func(AgentRun) (driver.Report, error)) {
	for _, r := range all {
		next = append(next, func(run AgentRun) (driver.Report, error) {
			if r.Used != (event.Usage{}) {
				if err := run.Spend(r.Used); err != nil && r.Kind != driver.None {
					return r, err
				}
			}
			return r, nil
		})
	}
	return next
}

// services returns the host services of a review with budgets.
func (w *world) services(t *testing.T, budgets ...engine.StepBudget) *HostServices {
	t.Helper()
	x := w.executor()
	c := engine.Call{Path: "q[1]/review#1", Review: &engine.ReviewInput{}, Budgets: budgets}
	usage, err := x.leafUsage(c)
	if err != nil {
		t.Fatal(err)
	}
	return x.openServices(t.Context(), c, leafStart{usage: usage}, "judge", "sonnet")
}

// An agent with a definition uses its provider, and its model unless the plugin names one.
func TestHostServicesDefinition(t *testing.T) {
	b := newWorld()
	b.agents.readers = map[string][2]string{"strict": {"codex", "haiku"}, "plain": {}}
	b.agents.next = reports([]driver.Report{{Text: "a"}, {Text: "b"}, {Text: "c"}})
	d := b.services(t)
	for i, ask := range []hostservice.Ask{{Agent: "strict"}, {Agent: "strict", Model: "opus"}, {Agent: "plain"}} {
		if _, err := d.Ask(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		want := []AgentRun{{Agent: "strict", Provider: "codex", Model: "haiku"}, {Agent: "strict", Provider: "codex", Model: "opus"}, {Agent: "plain", Model: "sonnet"}}[i]
		if got := b.agents.runs[i]; got.Agent != want.Agent || got.Provider != want.Provider || got.Model != want.Model || !got.ReadOnly {
			t.Errorf("%+v: %+v", ask, got)
		}
	}
	if _, err := d.Ask(t.Context(), hostservice.Ask{Agent: "gone"}); !errors.Is(err, pluginerr.ErrInvalid) || len(b.agents.runs) != 3 {
		t.Errorf("%v after %d runs", err, len(b.agents.runs))
	}
}

// A further question continues the conversation under the CLI's ID, even after a rate limit.
func TestHostServicesConversation(t *testing.T) {
	const named = "0198c2a4-5b6c-7d8e-9f00-112233445566"
	b := newWorld()
	b.agents.next = reports([]driver.Report{
		{Kind: driver.Limit, Started: true, Conversation: named}, {Text: "first", Conversation: named}, {Text: "second", Conversation: named},
	})
	d := b.services(t)
	first, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"})
	if err != nil || first.Text != "first" || first.Conversation != named {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "again", Model: "haiku", Conversation: first.Conversation})
	if err != nil || second.Text != "second" || second.Conversation != named {
		t.Fatalf("%+v, %v", second, err)
	}
	for i, want := range []AgentRun{
		{Conversation: b.agents.runs[0].Conversation, Prompt: "look", Model: "sonnet"},
		{Conversation: named, Resume: true, Prompt: "look", Model: "sonnet"},
		{Conversation: named, Resume: true, Prompt: "again", Model: "haiku"},
	} {
		got := b.agents.runs[i]
		if got.Conversation != want.Conversation || got.Resume != want.Resume || got.Prompt != want.Prompt || got.Model != want.Model || !got.ReadOnly ||
			got.Path != "q[1]/review#1/judge" {
			t.Errorf("run %d: %+v", i, got)
		}
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// If a budget is spent, no agent starts and the run waits.
func TestHostServicesBudget(t *testing.T) {
	b := newWorld()
	b.agents.next = reports([]driver.Report{{Text: "dear", Used: event.Usage{Turns: 2}}})
	d := b.services(t, engine.StepBudget{Name: "q", Max: budget.Amount{Turns: 2}})
	if answer, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"}); err != nil || answer.Text != "dear" {
		t.Errorf("what it just reaches is an answer: %+v, %v", answer, err)
	}
	wait := (*Wait)(nil)
	if _, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "again"}); !errors.As(err, &wait) || wait.Reason != "budget" || wait.Detail != "the budget of step q is spent: 2 of 2 turns" {
		t.Errorf("%v", err)
	}
	if err := d.close(); !errors.As(err, &wait) || len(b.agents.runs) != 1 {
		t.Errorf("%v after %d runs", err, len(b.agents.runs))
	}
	b = newWorld()
	d = b.services(t)
	d.executor.Budget = budget.New(budget.Amount{USD: 1})
	d.executor.Budget.Use(budget.Amount{USD: 1})
	if _, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"}); !errors.As(err, &wait) || len(b.agents.runs) != 0 {
		t.Errorf("the shared budget is spent: %v after %d runs", err, len(b.agents.runs))
	}
}

// A failed agent results in an error with the reason. The run does not wait.
func TestHostServicesFailures(t *testing.T) {
	b := newWorld()
	b.agents.next, b.agents.err = reports([]driver.Report{{Kind: driver.Timeout, Error: "no output for 10m"}}), errors.New("no such program")
	d := b.services(t)
	if _, err := d.Ask(t.Context(), hostservice.Ask{}); err == nil || err.Error() != "the agent gave no answer (timeout): no output for 10m" {
		t.Errorf("%v", err)
	}
	if _, err := d.Ask(t.Context(), hostservice.Ask{}); !errors.Is(err, b.agents.err) {
		t.Errorf("%v", err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// The size of the log is limited, and each text is prefixed with the name of the plugin.
func TestHostServicesLog(t *testing.T) {
	b := newWorld()
	d := b.services(t)
	if err := d.Log("one\ntwo"); err != nil || b.logs["q[1]/review#1"].String() != "judge: one\n    two\n" {
		t.Errorf("%q, %v", b.logs["q[1]/review#1"].String(), err)
	}
	var errs []error
	for range 20 {
		errs = append(errs, d.Log(strings.Repeat("x", 100<<10)))
	}
	if n := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, pluginerr.ErrTooLarge) }); n != 10 || b.logs["q[1]/review#1"].Len() > maxLogged {
		t.Errorf("%d were taken, %d bytes", n, b.logs["q[1]/review#1"].Len())
	}
}
