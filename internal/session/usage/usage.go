// Package usage computes the usage of a session from its events, by step. It
// includes attempts that were killed and steps that a user ran again.
//
// The usage of a leaf is that in its recorded result. Without a result,
// it is the sum of the last report of each of its agents, and of the time in which the session
// worked on the leaf, excluding waits for rate limits.
package usage

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
)

// Usage is the usage of a session so far.
type Usage struct {
	prices budget.Prices
	charge func(Charge)             // may be nil
	seen   int64                    // sequence number of the last event read
	used   map[string]budget.Amount // by leaf path
	open   leaf
	last   time.Time
}

// leaf is a leaf that has started and has no result yet.
type leaf struct {
	path   string
	at     time.Time           // when the current work began; zero if the session is not working on it
	runs   budget.Amount       // usage of its finished agents, and working time before at
	agents map[string]agentRun // its running agents, by path: agents of reviewers run concurrently
	last   Charge              // to the agent that reported last
}

// agentRun is the last report of a running agent.
type agentRun struct {
	agent  string
	model  string
	tokens budget.Tokens
	amount budget.Amount
}

func (l leaf) amount() budget.Amount {
	sum := l.runs
	for _, path := range slices.Sorted(maps.Keys(l.agents)) {
		sum = sum.Add(l.agents[path].amount)
	}
	return sum
}

// New returns the usage of a session without events.
func New(prices budget.Prices) *Usage {
	return &Usage{prices: prices, used: map[string]budget.Amount{}}
}

// Read processes the new events of a session. events must begin with all events that were read before.
func (u *Usage) Read(events []event.Event) {
	for _, e := range events[min(u.seen, int64(len(events))):] {
		u.Take(e)
	}
}

// Take processes the next event.
func (u *Usage) Take(e event.Event) {
	u.apply(e)
	u.seen, u.last = e.Seq, e.Time
}

func (u *Usage) apply(e event.Event) {
	isOpen := u.open.path != ""
	switch {
	case isOpen && event.LeafOf(e.Path) == u.open.path && e.Type != event.StepCompleted:
		u.work(e)
	case e.Type == event.StepStarted:
		u.close()
		u.open = leaf{path: e.Path, at: e.Time, agents: map[string]agentRun{}}
	case e.Type == event.StepCompleted:
		u.complete(e)
	case isOpen && e.Type == event.SessionResumed:
		u.pause(u.last) // the stop may not have been recorded
		u.open.at = e.Time
	case e.Type.Stops():
		u.pause(e.Time)
	}
}

// work processes an event of the running leaf.
func (u *Usage) work(e event.Event) {
	switch e.Type {
	case event.StepStarted:
		u.open.at = e.Time
	case event.LimitMet:
		u.pause(e.Time)
	case event.LimitOver:
		u.pause(e.Time)
		u.open.at = e.Time
	case event.AgentStarted:
		u.open.runs = u.open.runs.Add(u.open.agents[e.Path].amount)
		u.open.agents[e.Path] = agentRun{agent: event.AgentOf(e)}
	case event.AgentUsage:
		var now event.Usage
		if e.Decode(&now) == nil {
			u.report(e, now)
		}
	}
}

// report processes an agent's usage since its start.
func (u *Usage) report(e event.Event, now event.Usage) {
	before := u.open.agents[e.Path]
	run := agentRun{agent: before.agent, model: cmp.Or(now.Model, before.model), tokens: tokensOf(now), amount: u.Amount(now)}
	u.open.agents[e.Path] = run
	u.open.last = Charge{
		Time: e.Time, Path: e.Path, Agent: run.agent, Model: run.model,
		Tokens: run.tokens.Sub(before.tokens), USD: run.amount.USD - before.amount.USD,
	}
	u.notify(u.open.last)
}

func (u *Usage) notify(c Charge) {
	if u.charge != nil {
		u.charge(c)
	}
}

// complete adds the usage in a leaf's result.
func (u *Usage) complete(e event.Event) {
	var result event.Result
	if e.Decode(&result) != nil {
		return
	}
	if result.Used == (budget.Amount{}) { // recorded by a version without budgets
		result.Used.USD = result.Usage.CostUSD
	}
	if u.open.path != e.Path {
		u.close()
	}
	u.correct(e, result.Used.USD-u.open.amount().USD)
	u.open = leaf{}
	u.used[e.Path] = u.used[e.Path].Add(result.Used)
}

// correct charges the difference between the cost in a leaf's result and the cost reported while it ran to its last agent. A
// CLI reports the exact cost only when it ends.
func (u *Usage) correct(e event.Event, usd float64) {
	if math.Abs(usd) < 1e-9 { // a rounding error
		return
	}
	last := u.open.last
	u.notify(Charge{Time: e.Time, Path: cmp.Or(last.Path, e.Path), Agent: last.Agent, Model: last.Model, USD: usd})
}

// close ends a leaf without a result.
func (u *Usage) close() {
	if u.open.path != "" {
		u.pause(u.last)
		u.used[u.open.path] = u.used[u.open.path].Add(u.open.amount())
	}
	u.open = leaf{}
}

func (u *Usage) pause(at time.Time) {
	if !u.open.at.IsZero() {
		u.open.runs.Wall += max(at.Sub(u.open.at), 0)
	}
	u.open.at = time.Time{}
}

// Amount converts an agent's usage to a budget amount. If its CLI has
// not reported a cost, the cost is computed from the prices.
func (u *Usage) Amount(used event.Usage) budget.Amount {
	tokens := tokensOf(used)
	cost, _ := u.prices.Cost(used.Model, tokens)
	return budget.Amount{USD: max(cost, used.Cost), Tokens: tokens.New(), Turns: used.Turns}
}

func tokensOf(used event.Usage) budget.Tokens {
	return budget.Tokens{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite}
}

// Cut returns the usage of an interrupted leaf so far.
func (u *Usage) Cut(path string) budget.Amount {
	if u.open.path != path {
		return budget.Amount{}
	}
	return u.open.amount()
}

// Within returns the usage of the leaves inside a scope. The scope is the path of a step
// without attempt and iteration, or empty for the whole session.
func (u *Usage) Within(scope string) budget.Amount {
	var sum budget.Amount
	for _, path := range slices.Sorted(maps.Keys(u.used)) { // floating-point sums depend on the order
		if Inside(scope, path) {
			sum = sum.Add(u.used[path])
		}
	}
	if Inside(scope, u.open.path) {
		sum = sum.Add(u.open.amount())
	}
	return sum
}

// Inside reports whether path is scope or inside it.
func Inside(scope, path string) bool {
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (scope == "" || rest == "" || strings.ContainsRune("#[/", rune(rest[0])))
}
