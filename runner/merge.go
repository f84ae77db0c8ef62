package runner

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/tmpl"
)

// MergeInput is what a merge leaf is given.
type MergeInput struct {
	Strategy      string          `json:"strategy"`
	Message       string          `json:"message,omitempty"` // empty: made from the task and Summary
	Summary       string          `json:"summary,omitempty"` // of the first agent
	Checks        []string        `json:"checks,omitempty"`
	Receipts      []event.Receipt `json:"receipts,omitempty"` // of the checks that ran last
	RequireReview bool            `json:"require_review"`
}

// mergeStep is a step that lands the task's branch on its target.
type mergeStep struct {
	name string
	spec grimoires.Merge
	plan *grimoires.Plan
}

// Run asks for the landing of what the steps before made.
func (m mergeStep) Run(ctx context.Context, s *State) (Outcome, error) {
	message := ""
	if m.spec.Message != "" {
		text, err := tmpl.Text(m.name+" message", m.spec.Message, s.Data(nil))
		if err != nil {
			return Outcome{}, fmt.Errorf("step %s: %w", m.name, err)
		}
		message = text
	}
	checks := m.spec.Checks
	if len(checks) == 0 {
		checks = m.plan.Checks
	}
	return s.call(ctx, m.name, Call{Merge: &MergeInput{
		Strategy: m.spec.Strategy, Message: message, Summary: s.summary,
		Checks: checks, Receipts: s.receipts, RequireReview: m.spec.RequireReview,
	}})
}
