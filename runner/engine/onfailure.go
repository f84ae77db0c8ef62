package engine

import (
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
)

// onFailure applies on_fail and on_success to the outcome of a step.
type onFailure struct {
	step     Step
	onFail   grimoires.OnFail
	exitLoop bool
}

// Run implements Step.
func (t onFailure) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.tolerant
	s.tolerant = t.onFail == grimoires.Continue
	out, err := t.step.Run(ctx, s)
	s.tolerant = outer
	switch {
	case err != nil:
	case out.Verdict == Passed && t.exitLoop:
		out.Verdict = ExitLoop
	case out.Verdict == Failed && t.onFail == grimoires.Fail:
		out.Verdict, out.Status = Stopped, event.StatusFailed
	case out.Verdict == Failed && t.onFail != grimoires.Continue:
		out.Verdict, out.Status = Stopped, event.StatusBlocked
	}
	return out, err
}
