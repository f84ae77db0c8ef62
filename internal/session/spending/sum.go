package spending

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/session"
)

// Sum is the sum of charges.
type Sum struct {
	Runs      int     `json:"runs"`         // of agents: those of steps, of reviewers, and subagents
	Input     int64   `json:"tokens_input"` // with those of the cache
	CacheRead int64   `json:"tokens_cache_read"`
	Output    int64   `json:"tokens_output"`
	Cached    float64 `json:"cached"` // share of CacheRead in Input
	CostUSD   float64 `json:"cost_usd"`
}

// Group is the sum of the charges with the same key.
type Group struct {
	Key string `json:"key"`
	Sum
}

// Keys returns the names of the keys for By.
func Keys() []string { return []string{"task", "agent", "model", "day"} }

// keyOf returns the value of a key of a charge.
func keyOf(c Charge, key string) string {
	switch key {
	case "task":
		return c.Task
	case "agent":
		return cmp.Or(c.Agent, "unknown")
	case "model":
		return cmp.Or(c.Model, "unknown")
	}
	return c.Time.Local().Format(time.DateOnly)
}

// By groups charges by one of the Keys. Days are sorted, the newest first, other groups by their cost.
func By(key string, all []Charge) []Group {
	by := map[string][]Charge{}
	for _, c := range all {
		k := keyOf(c, key)
		by[k] = append(by[k], c)
	}
	groups := []Group{} // not nil, for JSON
	for k, charges := range by {
		groups = append(groups, Group{k, Of(charges)})
	}
	slices.SortFunc(groups, func(a, b Group) int {
		if key == "day" {
			return strings.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), strings.Compare(a.Key, b.Key))
	})
	return groups
}

// Of returns the sum of charges.
func Of(all []Charge) (s Sum) {
	var tokens budget.Tokens
	runs := map[[2]string]bool{}
	for _, c := range all {
		runs[[2]string{c.Session, c.Path}] = true
		tokens = tokens.Add(c.Tokens)
		s.CostUSD += c.USD
	}
	s.Runs, s.Output, s.CacheRead = len(runs), tokens.Output, tokens.CacheRead
	if s.Input = tokens.Input + tokens.CacheRead + tokens.CacheWrite; s.Input > 0 {
		s.Cached = float64(s.CacheRead) / float64(s.Input)
	}
	return s
}

// On returns the charges on the local day of a time.
func On(day time.Time, all []Charge) []Charge {
	return slices.DeleteFunc(slices.Clone(all), func(c Charge) bool { return keyOf(c, "day") != day.Local().Format(time.DateOnly) })
}

// Today returns the budget for today, with the usage of all sessions in US dollars and tokens. Damaged sessions do not count.
// Without a limit, or on a nil Ledger, nothing is read.
func (l *Ledger) Today() (budget.Day, error) {
	if l == nil {
		return budget.Day{}, nil
	}
	d := budget.DayOf(l.now())
	if d.Limit = l.limit; l.limit == (budget.Amount{}) {
		return d, nil
	}
	all, broken := l.Since(d.Began)
	_, err := session.DamagedIn(broken)
	for _, c := range all {
		d.Used = d.Used.Add(budget.Amount{USD: c.USD, Tokens: c.Tokens.New()})
	}
	return d, err
}
