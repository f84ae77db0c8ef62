package engine

import "context"

// record stores the result of a step in the state, under the step's name.
type record struct {
	step         Step
	name, output string
}

// Run implements Step.
func (r record) Run(ctx context.Context, s *State) (Outcome, error) {
	out, err := r.step.Run(ctx, s)
	if err == nil && out.Verdict != Revise { // with Revise, the step has no result yet
		s.setResult(r.name, r.output, out.Result)
		reason := ExitPassed
		if out.Verdict == Failed || out.Verdict == Stopped {
			reason = ExitFailed
		}
		s.exit(r.name, reason)
	}
	return out, err
}
