package engine

import "context"

// sequence runs steps in order until one ends the run or the loop.
type sequence []Step

// Run implements Step.
func (q sequence) Run(ctx context.Context, s *State) (Outcome, error) {
	last := Outcome{Verdict: Passed}
	for _, step := range q {
		out, err := step.Run(ctx, s)
		if err != nil || out.ends() || out.Verdict == ExitLoop {
			return out, err
		}
		if out.Verdict != Skipped {
			last = out
		}
	}
	return last, nil
}
