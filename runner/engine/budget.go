package engine

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/budget"
)

// StepBudget is the shared budget of all leaves inside a step.
type StepBudget struct {
	Scope   string // path of the step, set when it runs; empty for the whole run
	Name    string // name of the step, empty for the whole run
	Max     budget.Amount
	Reserve float64 // share that this leaf must not use
}

// unreserved permits a step to use the reserve, because it reviews or lands.
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

// budgeted limits a step, including its attempts and the steps inside it, to a budget.
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
