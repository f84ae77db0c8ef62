package engine

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/budget"
)

// StepBudget is the budget of all leaves inside a step together.
type StepBudget struct {
	Scope   string // path of the step, known when it runs; empty: the whole run
	Name    string // of the step; empty: the whole run
	Max     budget.Amount
	Reserve float64 // the share that this leaf may not use
}

// unreserved lets a step use the reserve: it reviews or lands.
type unreserved struct{ step Step }

// Run implements Step.
func (u unreserved) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.budgets
	defer func() { s.budgets = outer }()
	s.budgets = slices.Clone(outer)
	for i := range s.budgets {
		s.budgets[i].Reserve = 0
	}
	return u.step.Run(ctx, s)
}

// budgeted applies a budget to a step, including its attempts and the steps inside it.
type budgeted struct {
	step Step
	StepBudget
}

// Run implements Step.
func (b budgeted) Run(ctx context.Context, s *State) (Outcome, error) {
	if b.Name != "" {
		b.Scope = s.at.of(b.Name)
	}
	outer := s.budgets
	s.budgets = append(outer[:len(outer):len(outer)], b.StepBudget)
	defer func() { s.budgets = outer }()
	return b.step.Run(ctx, s)
}
