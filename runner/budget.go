package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

// budgetReason is the wait reason of a session with a spent budget.
const budgetReason = event.WaitBudget

// leafUsage tracks the usage of one leaf.
type leafUsage struct {
	executor *Executor
	budgets  []budgetLeft
	before   budget.Amount // used by interrupted runs of the leaf

	mu    sync.Mutex
	now   budget.Amount  // used by the runs in this process
	usage provider.Usage // used by the runs in this process that ended with a result
	wait  *Wait          // set if a budget is exceeded
}

// agentUsage tracks the usage of one run of an agent. It counts toward the usage of its leaf.
type agentUsage struct {
	*leafUsage
	used budget.Amount
}

// budgetLeft is a budget and the amount used of it before the leaf.
type budgetLeft struct {
	engine.StepBudget
	used budget.Amount
}

// leafUsage returns the usage tracker of a leaf. The error is a *Wait if a budget is spent.
func (x *Executor) leafUsage(c engine.Call) (*leafUsage, error) {
	resumed := x.Journal.All(event.SessionResumed)
	s := &leafUsage{executor: x, before: x.usedBefore(c.Path)}
	for _, b := range c.Budgets {
		b.Max = raised(b, resumed)
		if b.Reserve > 0 {
			b.Max = b.Max.Part(1 - b.Reserve)
		}
		used := x.usedWithin(b.Scope)
		s.budgets = append(s.budgets, budgetLeft{b, used})
		if c.Agent == nil { // a leaf without an agent uses only time
			b.Max, used = budget.Amount{Wall: b.Max.Wall}, budget.Amount{Wall: used.Wall}
		}
		if text := b.Max.Reached(used); text != "" {
			return nil, spent(b, text, b.Max.SuggestMore(used))
		}
	}
	limit, left := x.Budget.Wall()
	if text := x.Budget.Reached(); text != "" && (c.Agent != nil || limit > 0 && left <= 0) {
		return nil, runBudgetSpent(text)
	}
	return s, nil
}

// usageSoFar calls ask with the usage of the session. u is valid until ask returns.
func (x *Executor) usageSoFar(ask func(u *usage.Usage)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.usage == nil {
		x.usage = usage.New(x.Prices)
	}
	x.usage.Read(x.Journal.Events())
	ask(x.usage)
}

// usedBefore returns the usage of interrupted runs of a leaf.
func (x *Executor) usedBefore(path string) (amount budget.Amount) {
	x.usageSoFar(func(u *usage.Usage) { amount = u.Cut(path) })
	return amount
}

// usedWithin returns the usage of the leaves inside a scope.
func (x *Executor) usedWithin(scope string) (amount budget.Amount) {
	x.usageSoFar(func(u *usage.Usage) { amount = u.Within(scope) })
	return amount
}

// amount converts an agent's usage to a budget amount.
func (x *Executor) amount(used event.Usage) (amount budget.Amount) {
	x.usageSoFar(func(u *usage.Usage) { amount = u.Amount(used) })
	return amount
}

// raised returns the limit of a budget, including the amounts that users have added.
func raised(b engine.StepBudget, resumed []event.Event) budget.Amount {
	limit := b.Max
	for _, e := range resumed {
		var r event.Resumed
		if e.Decode(&r) == nil && usage.Inside(b.Scope, r.At) {
			limit = limit.Raised(r.Budget)
		}
	}
	return limit
}

// spent returns the wait for a spent budget of the session.
func spent(b engine.StepBudget, text, more string) *Wait {
	of := "the run"
	if b.Name != "" {
		of = "step " + b.Name
	}
	if b.Reserve > 0 {
		text += fmt.Sprintf(", %.0f%% reserved for review and landing", b.Reserve*100)
	}
	return &Wait{Reason: budgetReason, Detail: "the budget of " + of + " is spent: " + text, Next: "resume", More: more}
}

// runBudgetSpent returns the wait for a spent budget of the run, which all of its tasks share.
func runBudgetSpent(text string) *Wait {
	return &Wait{Reason: budgetReason, Detail: "the budget of this coven run is spent: " + text, Next: "resume"}
}

// clock returns a context that ends when the leaf has used up the time of its budgets.
func (s *leafUsage) clock(ctx context.Context) (context.Context, context.CancelFunc) {
	var ends []context.CancelFunc
	for _, b := range s.budgets {
		if b.Max.Wall == 0 {
			continue
		}
		wall := budget.Amount{Wall: b.Max.Wall}
		cause := spent(b.StepBudget, wall.Reached(wall), wall.SuggestMore(wall))
		var end context.CancelFunc
		ctx, end = workclock.Limit(ctx, max(b.Max.Wall-b.used.Wall, time.Millisecond), cause)
		ends = append(ends, end)
	}
	shared := s.executor.Budget
	if limit, left := shared.Wall(); limit > 0 {
		wall := budget.Amount{Wall: limit}
		var end context.CancelFunc
		ctx, end = workclock.Limit(ctx, max(left, time.Millisecond), runBudgetSpent(wall.Reached(wall)))
		ends = append(ends, end)
	}
	ctx, worked := workclock.Measure(ctx)
	return ctx, func() {
		shared.Use(budget.Amount{Wall: worked()})
		for _, end := range ends {
			end()
		}
	}
}

// agent returns the usage tracker for another run of an agent.
func (s *leafUsage) agent() *agentUsage { return &agentUsage{leafUsage: s} }

// charge records an agent's total usage so far. If it returns an error, the agent must stop.
func (t *agentUsage) charge(u event.Usage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := t.add(t.executor.amount(u)); text != "" {
		t.wait = runBudgetSpent(text)
	}
	for _, b := range t.budgets {
		if text := b.Max.Exceeds(b.used.Add(t.now)); text != "" {
			t.wait = spent(b.StepBudget, text, b.Max.SuggestMore(b.used.Add(t.now)))
		}
	}
	if t.wait != nil {
		return t.wait
	}
	return nil
}

// add records the total amount that the agent has used so far. It returns a description of the exceeded
// limit of the shared budget, or "".
func (t *agentUsage) add(amount budget.Amount) string {
	more := amount.Sub(t.used)
	t.used, t.now = amount, t.now.Add(more)
	return t.executor.Budget.Use(more)
}

// ended records the usage in an agent's final report. For a complete run, it uses the cost reported by the
// CLI.
func (t *agentUsage) ended(r driver.Report) {
	if r.Used == (event.Usage{}) {
		return // the agent never started
	}
	amount := t.executor.amount(r.Used)
	if r.Kind == driver.None && r.Used.Cost > 0 {
		amount.USD = r.Used.Cost
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage = t.usage.Add(r.Result.Usage)
	t.add(amount) // the next leaf checks the budgets
}

// exceeded returns the wait for an exceeded budget, or nil.
func (s *leafUsage) exceeded() *Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

// exhausted returns the wait for a budget that leaves nothing for another agent, or nil.
func (s *leafUsage) exhausted() *Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.budgets {
		if text := b.Max.Reached(b.used.Add(s.now)); text != "" {
			return spent(b.StepBudget, text, b.Max.SuggestMore(b.used.Add(s.now)))
		}
	}
	if text := s.executor.Budget.Reached(); text != "" {
		return runBudgetSpent(text)
	}
	return nil
}

// total returns the usage of the leaf, without its time in this process.
func (s *leafUsage) total() budget.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before.Add(s.now)
}

// pluginUsage returns the usage of the agents that ran for plugins, as reported by their CLI.
func (s *leafUsage) pluginUsage() provider.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// isSpent reports whether err means that a budget is spent.
func isSpent(err error) bool {
	wait := (*Wait)(nil)
	return errors.As(err, &wait) && wait.Reason == budgetReason
}
