package grimoires

import (
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// budgetKeys is a budget as a file has it.
type budgetKeys struct {
	USD    yamldoc.At[float64]       `yaml:"usd" about:"US dollars"`
	Tokens yamldoc.At[int64]         `yaml:"tokens" about:"that the model read for the first time or wrote"`
	Turns  yamldoc.At[int]           `yaml:"turns" about:"answers of the model"`
	Wall   yamldoc.At[time.Duration] `yaml:"wall" about:"time at work"`
}

// runBudgetKeys is the budget of a whole run.
type runBudgetKeys struct {
	Amount  budgetKeys          `yaml:",inline"`
	Reserve yamldoc.At[float64] `yaml:"reserve" about:"share, 0 to 0.9, that is kept for review and landing; 0.1"`
}

// amount reads a budget, which stands at a place. One that limits nothing is an
// error.
func (r *reader) amount(at yamldoc.Place, isSet bool, k budgetKeys) budget.Amount {
	a := budget.Amount{USD: k.USD.Value, Tokens: k.Tokens.Value, Turns: k.Turns.Value, Wall: k.Wall.Value}
	for _, given := range []struct {
		at  yamldoc.Place
		set bool
		ok  bool
	}{
		{k.USD, k.USD.Set(), a.USD > 0}, {k.Tokens, k.Tokens.Set(), a.Tokens > 0}, {k.Turns, k.Turns.Set(), a.Turns > 0},
	} {
		if given.set && !given.ok {
			r.doc.Fail(given.at, "a budget must be more than 0", "leave it out for none")
		}
	}
	if isSet && a == (budget.Amount{}) {
		r.doc.Fail(at, "the budget limits nothing", "usd, tokens, turns or wall")
	}
	return a
}

// reserve reads the share of a budget that is kept for review and landing.
func (r *reader) reserve(share yamldoc.At[float64]) float64 {
	if share.Set() && (share.Value < 0 || share.Value > 0.9) {
		r.doc.Fail(share, "reserve is a share of the budget: 0 to 0.9", "")
	}
	return share.Or(defaultReserve)
}
