package runner

import (
	"context"

	"github.com/coven-run/coven/grimoires"
)

// sequence runs steps in order until one ends the run or the loop.
type sequence []Step

// Run implements Step.
func (q sequence) Run(ctx context.Context, s *State) (Outcome, error) {
	last := Outcome{Verdict: Passed}
	for _, step := range q {
		out, err := step.Run(ctx, s)
		if err != nil || out.Verdict == Stopped || out.Verdict == ExitLoop {
			return out, err
		}
		if out.Verdict != Skipped {
			last = out
		}
	}
	return last, nil
}

// loop repeats its body until a step in it exits the loop.
type loop struct {
	name  string
	body  Step
	max   int
	onMax grimoires.OnFail
}

// Run implements Step.
func (l loop) Run(ctx context.Context, s *State) (Outcome, error) {
	next, leave := s.enter(l.name, l.max)
	defer leave()
	last := Outcome{}
	for i := 1; i <= l.max; i++ {
		next(i)
		out, err := l.body.Run(ctx, s)
		switch {
		case err != nil || out.Verdict == Stopped:
			return out, err
		case out.Verdict == ExitLoop:
			s.saw(l.name, WayExited)
			out.Verdict = Passed
			return out, nil
		}
		last = out
	}
	s.saw(l.name, WayExhausted)
	last.Path = s.round()
	return exhausted(l.name, limitOfIterations, l.onMax, last), nil
}

// limitOfIterations is why a loop ends that never exited.
const limitOfIterations = "reached its limit of iterations"

// exhausted is the outcome of a loop that never exited.
func exhausted(name, why string, onMax grimoires.OnFail, last Outcome) Outcome {
	switch onMax {
	case grimoires.Continue:
		last.Verdict = Passed
	case grimoires.Fail:
		last.Verdict, last.Status = Stopped, StatusFail
	default:
		last.Verdict, last.Status = Stopped, Blocked
	}
	if last.Verdict == Stopped {
		why := "loop " + name + " " + why
		if last.Result.Error != "" {
			why += ": " + last.Result.Error
		}
		last.Result.Error = why
	}
	return last
}
