package runner

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner/engine"
)

// bench has everything of a workshop that a desk needs, in memory.
type bench struct {
	agents
	events  []event.Event
	log     strings.Builder
	reports []agent.Report
	err     error // when there is no report any more
	runs    []AgentRun
}

func (b *bench) Events() []event.Event { return b.events }

func (b *bench) Append(e event.Event, _ any) error {
	b.events = append(b.events, e)
	return nil
}

func (b *bench) Open(string) (io.WriteCloser, int64, error) { return closer{&b.log}, 0, nil }
func (b *bench) Read(string, int64) (io.ReadCloser, error)  { return nil, errors.ErrUnsupported }

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

func (b *bench) Await(context.Context, string, string) error { return nil }

func (b *bench) Run(_ context.Context, run AgentRun) (agent.Report, error) {
	b.runs = append(b.runs, run)
	if len(b.reports) == 0 {
		return agent.Report{}, b.err
	}
	r := b.reports[0]
	b.reports = b.reports[1:]
	if r.Used != (event.Usage{}) {
		if err := run.Spend(r.Used); err != nil && r.Kind != agent.None {
			return r, err
		}
	}
	return r, nil
}

// desk opens a desk for a review with budgets.
func (b *bench) desk(t *testing.T, budgets ...engine.StepBudget) *HostServices {
	t.Helper()
	w := &Executor{Journal: b, Agents: b, Logs: b}
	c := engine.Call{Path: "q[1]/review#1", Review: &engine.ReviewInput{}, Budgets: budgets}
	s, err := w.leafUsage(c)
	if err != nil {
		t.Fatal(err)
	}
	return w.openServices(t.Context(), c, beginning{usage: s}, "judge", "sonnet")
}

// An agent that is asked again goes on with its conversation, by the name that its CLI
// gave it, also when a limit came between.
func TestDeskConversation(t *testing.T) {
	const named = "0198c2a4-5b6c-7d8e-9f00-112233445566"
	b := &bench{reports: []agent.Report{
		{Kind: agent.Limit, Started: true, Conversation: named}, {Text: "first", Conversation: named}, {Text: "second", Conversation: named},
	}}
	d := b.desk(t)
	first, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"})
	if err != nil || first.Text != "first" || first.Conversation != named {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "again", Model: "haiku", Conversation: first.Conversation})
	if err != nil || second.Text != "second" || second.Conversation != named {
		t.Fatalf("%+v, %v", second, err)
	}
	for i, want := range []AgentRun{
		{Conversation: b.runs[0].Conversation, Prompt: "look", Model: "sonnet"},
		{Conversation: named, Resume: true, Prompt: "look", Model: "sonnet"},
		{Conversation: named, Resume: true, Prompt: "again", Model: "haiku"},
	} {
		got := b.runs[i]
		if got.Conversation != want.Conversation || got.Resume != want.Resume || got.Prompt != want.Prompt || got.Model != want.Model || !got.ReadOnly ||
			got.Path != "q[1]/review#1/judge" {
			t.Errorf("run %d: %+v", i, got)
		}
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// When nothing is left of a budget no agent is asked, and the run waits.
func TestDeskBudget(t *testing.T) {
	b := &bench{reports: []agent.Report{{Text: "dear", Used: event.Usage{Turns: 2}}}}
	d := b.desk(t, engine.StepBudget{Name: "q", Max: budget.Amount{Turns: 2}})
	if answer, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"}); err != nil || answer.Text != "dear" {
		t.Errorf("what it just reaches is an answer: %+v, %v", answer, err)
	}
	wait := (*Wait)(nil)
	if _, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "again"}); !errors.As(err, &wait) || wait.Reason != "budget" || wait.Detail != "the budget of step q is spent: 2 of 2 turns" {
		t.Errorf("%v", err)
	}
	if err := d.close(); !errors.As(err, &wait) || len(b.runs) != 1 {
		t.Errorf("%v after %d runs", err, len(b.runs))
	}
	b = &bench{}
	d = b.desk(t)
	d.executor.Budget = budget.New(budget.Amount{USD: 1})
	d.executor.Budget.Use(budget.Amount{USD: 1})
	if _, err := d.Ask(t.Context(), hostservice.Ask{Prompt: "look"}); !errors.As(err, &wait) || len(b.runs) != 0 {
		t.Errorf("the shared budget is spent: %v after %d runs", err, len(b.runs))
	}
}

// An agent without an answer is an error with the reason; nothing waits for it.
func TestDeskFailures(t *testing.T) {
	b := &bench{reports: []agent.Report{{Kind: agent.Timeout, Error: "no output for 10m"}}, err: errors.New("no such program")}
	d := b.desk(t)
	if _, err := d.Ask(t.Context(), hostservice.Ask{}); err == nil || err.Error() != "the agent gave no answer (timeout): no output for 10m" {
		t.Errorf("%v", err)
	}
	if _, err := d.Ask(t.Context(), hostservice.Ask{}); !errors.Is(err, b.err) {
		t.Errorf("%v", err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// The log takes so much, with the judge's name before each text.
func TestDeskLog(t *testing.T) {
	b := &bench{}
	d := b.desk(t)
	if err := d.Log("one\ntwo"); err != nil || b.log.String() != "judge: one\n    two\n" {
		t.Errorf("%q, %v", b.log.String(), err)
	}
	var errs []error
	for range 20 {
		errs = append(errs, d.Log(strings.Repeat("x", 100<<10)))
	}
	if n := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, pluginerr.ErrTooLarge) }); n != 10 || b.log.Len() > maxLogged {
		t.Errorf("%d were taken, %d bytes", n, b.log.Len())
	}
}
