package engine

import (
	"context"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// when is a step that runs only if a condition is true.
type when struct {
	step         Step
	name, output string
	condition    tmpl.Template
}

// Run implements Step.
func (w when) Run(ctx context.Context, s *State) (Outcome, error) {
	ok, err := w.condition.Bool(s.Data(nil))
	if err != nil {
		out := s.templateFailure(w.name, err)
		out.Verdict, out.Status = Stopped, event.StatusBlocked // it is unknown whether the step should run
		return out, nil
	}
	if !ok {
		s.exit(w.name, ExitSkipped)
		s.skipped(w.name, w.output)
		return Outcome{Verdict: Skipped}, nil
	}
	return w.step.Run(ctx, s)
}

// omitted is a step that has nothing to do in this plan: a checks step without checks.
type omitted struct{ name, output string }

// Run implements Step.
func (k omitted) Run(_ context.Context, s *State) (Outcome, error) {
	s.skipped(k.name, k.output)
	return Outcome{Verdict: Skipped}, nil
}
