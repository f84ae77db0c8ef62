// Package ledger adds up what a session has used, from its events: by step, the
// attempts that were killed and those that a person had run again among them.
//
// Rules. What a leaf's recorded result says it used is what counts for it. Of a
// leaf without a result the last word of each of its agents counts, and the time
// in which the session was at work on it: not that in which it waited for a limit.
package ledger

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
)

// Ledger is what a session has used so far.
type Ledger struct {
	prices budget.Prices
	seen   int64                    // number of the last event that is taken in
	used   map[string]budget.Amount // by path of leaf
	open   leaf
	last   time.Time
}

// leaf is a leaf that began and has no result.
type leaf struct {
	path   string
	at     time.Time                // since when the session has been at work on it; zero: it is not
	runs   budget.Amount            // of its agents that are over, and the time up to at
	agents map[string]budget.Amount // of the last one, by path: those that reviewers ask work at the same time
}

func (l leaf) amount() budget.Amount {
	sum := l.runs
	for _, path := range slices.Sorted(maps.Keys(l.agents)) {
		sum = sum.Add(l.agents[path])
	}
	return sum
}

// New returns an empty ledger.
func New(prices budget.Prices) *Ledger {
	return &Ledger{prices: prices, used: map[string]budget.Amount{}}
}

// Read takes in the events of a session that it has not seen.
func (l *Ledger) Read(events []event.Event) {
	for _, e := range events[min(l.seen, int64(len(events))):] {
		l.take(e)
		l.seen, l.last = e.Seq, e.Time
	}
}

func (l *Ledger) take(e event.Event) {
	isOpen := l.open.path != ""
	switch {
	case isOpen && event.LeafOf(e.Path) == l.open.path && e.Type != event.StepCompleted:
		l.work(e)
	case e.Type == event.StepStarted:
		l.close()
		l.open = leaf{path: e.Path, at: e.Time, agents: map[string]budget.Amount{}}
	case e.Type == event.StepCompleted:
		l.complete(e)
	case isOpen && e.Type == event.SessionResumed:
		l.pause(l.last) // if nobody recorded that it stopped
		l.open.at = e.Time
	case e.Type.Stops():
		l.pause(e.Time)
	}
}

// work takes in what happens in the leaf that is open.
func (l *Ledger) work(e event.Event) {
	switch e.Type {
	case event.StepStarted:
		l.open.at = e.Time
	case event.LimitMet:
		l.pause(e.Time)
	case event.LimitOver:
		l.pause(e.Time)
		l.open.at = e.Time
	case event.AgentStarted:
		l.open.runs = l.open.runs.Add(l.open.agents[e.Path])
		delete(l.open.agents, e.Path)
	case event.AgentUsage:
		var u event.Usage
		if e.Decode(&u) == nil {
			l.open.agents[e.Path] = l.Amount(u)
		}
	}
}

// complete takes in a leaf's own word about what it used.
func (l *Ledger) complete(e event.Event) {
	var result event.Result
	if e.Decode(&result) != nil {
		return
	}
	if result.Used == (budget.Amount{}) { // by a coven from before there were budgets
		result.Used.USD = result.Usage.CostUSD
	}
	if l.open.path != e.Path {
		l.close()
	}
	l.open = leaf{}
	l.used[e.Path] = l.used[e.Path].Add(result.Used)
}

// close gives up a leaf whose result will never come.
func (l *Ledger) close() {
	if l.open.path != "" {
		l.pause(l.last)
		l.used[l.open.path] = l.used[l.open.path].Add(l.open.amount())
	}
	l.open = leaf{}
}

func (l *Ledger) pause(at time.Time) {
	if !l.open.at.IsZero() {
		l.open.runs.Wall += max(at.Sub(l.open.at), 0)
	}
	l.open.at = time.Time{}
}

// Amount is what an agent used, in the terms of a budget. Where its CLI does not
// say what that cost, or not yet, the prices do.
func (l *Ledger) Amount(u event.Usage) budget.Amount {
	tokens := budget.Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	cost, _ := l.prices.Cost(u.Model, tokens)
	return budget.Amount{USD: max(cost, u.Cost), Tokens: tokens.New(), Turns: u.Turns}
}

// Cut is what a leaf that was cut off has used so far, in runs that are over.
func (l *Ledger) Cut(path string) budget.Amount {
	if l.open.path != path {
		return budget.Amount{}
	}
	return l.open.amount()
}

// Within is what the leaves inside a scope have used: a step, given by its path
// without attempt and iteration, or the whole session when scope is empty.
func (l *Ledger) Within(scope string) budget.Amount {
	var sum budget.Amount
	for _, path := range slices.Sorted(maps.Keys(l.used)) { // in one order: sums of fractions depend on it
		if Inside(scope, path) {
			sum = sum.Add(l.used[path])
		}
	}
	if Inside(scope, l.open.path) {
		sum = sum.Add(l.open.amount())
	}
	return sum
}

// Inside says whether a path is that of a scope, or inside it.
func Inside(scope, path string) bool {
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (scope == "" || rest == "" || strings.ContainsRune("#[/", rune(rest[0])))
}
