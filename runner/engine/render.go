package engine

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/event"
)

// render turns a template error into a failure of the step.
type render struct {
	step Step
	name string
}

// Run implements Step.
func (r render) Run(ctx context.Context, s *State) (Outcome, error) {
	out, err := r.step.Run(ctx, s)
	if bad := (*templateError)(nil); errors.As(err, &bad) {
		return s.templateFailure(r.name, bad), nil
	}
	return out, err
}

// templateError means that a template cannot be rendered. Its text names the step.
type templateError struct{ error }

// templateFailure returns the outcome of a step whose template cannot be rendered.
func (s *State) templateFailure(name string, err error) Outcome {
	return Outcome{Verdict: Failed, Path: s.at.leaf(name, s.attempt), Result: event.Result{Error: err.Error(), ErrorType: event.ErrorTemplate}}
}
