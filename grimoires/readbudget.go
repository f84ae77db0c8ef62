package grimoires

import (
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// runBudgetKeys is the budget of a whole run.
type runBudgetKeys struct {
	Amount  budget.Keys         `yaml:",inline"`
	Reserve yamldoc.At[float64] `yaml:"reserve" about:"share, 0 to 0.9, reserved for review and landing; 0.1"`
}

// amount reads a budget at a place. A budget that limits nothing is an error.
func (r *reader) amount(at yamldoc.Place, isSet bool, k budget.Keys) budget.Amount {
	a := k.Read(r.doc)
	if isSet && a == (budget.Amount{}) {
		r.doc.Fail(at, "the budget limits nothing", "usd, tokens, turns or wall")
	}
	return a
}

// reserve reads the share of a budget reserved for review and landing.
func (r *reader) reserve(share yamldoc.At[float64]) float64 {
	if share.Set() && (share.Value < 0 || share.Value > 0.9) {
		r.doc.Fail(share, "reserve is a share of the budget: 0 to 0.9", "")
	}
	return share.Or(defaultReserve)
}
