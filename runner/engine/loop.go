package engine

import (
	"context"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
)

// loop repeats its body until a step in it exits the loop.
type loop struct {
	name  string
	body  Step
	max   int
	onMax grimoires.OnFail
	check lastCheck
}

// lastCheck evaluates the exit condition of a loop again after the last iteration, so that the last fix is
// also checked.
type lastCheck struct {
	step  Step     // nil if no step follows the exit condition
	fixes []string // names of the steps after the exit condition
}

// checkOf returns the last check of a loop: the steps that can exit it, and the scripts before the last of
// these, which may prepare the check.
func checkOf(plan *grimoires.Plan, body []grimoires.Step) lastCheck {
	end := 0
	for i, step := range body {
		if step.ExitLoop {
			end = i + 1
		}
	}
	if end == 0 || end == len(body) {
		return lastCheck{}
	}
	var again []grimoires.Step
	for _, step := range body[:end] {
		_, isScript := step.Kind.(*grimoires.Script)
		if step.ExitLoop || isScript {
			again = append(again, step)
		}
	}
	check := lastCheck{step: buildAll(plan, again)}
	for _, step := range body[end:] {
		check.fixes = append(check.fixes, step.Name)
	}
	return check
}

// due reports whether a fix ran in the last iteration.
func (c lastCheck) due(s *State) bool {
	return c.step != nil && slices.ContainsFunc(c.fixes, s.ran)
}

// Run implements Step.
func (l loop) Run(ctx context.Context, s *State) (Outcome, error) {
	next, leave := s.enter(l.name, l.max)
	defer leave()
	last, path := Outcome{}, ""
	for i := 1; i <= l.max; i++ {
		next(i)
		out, over, err := l.once(ctx, s, l.body)
		if err != nil || over {
			return out, err
		}
		last, path = out, s.round()
	}
	if l.check.due(s) {
		next(l.max + 1)
		out, over, err := l.once(ctx, s, l.check.step)
		if err != nil || over {
			return out, err
		}
		last = out
	}
	s.exit(l.name, ExitExhausted)
	last.Path = path // resuming repeats the whole iteration
	return exhausted(l.name, limitOfIterations, l.onMax, last), nil
}

// once runs the steps of one iteration. over reports whether the loop ends.
func (l loop) once(ctx context.Context, s *State, steps Step) (out Outcome, over bool, err error) {
	out, err = steps.Run(ctx, s)
	if err == nil && out.Verdict == ExitLoop {
		s.exit(l.name, ExitByStep)
		out.Verdict = Passed
		return out, true, nil
	}
	return out, out.ends(), err
}

// limitOfIterations and noProgress describe why a loop ended without being exited by a step. They may be
// part of a later step's input. If they change, the input no longer matches the record of a session.
const (
	limitOfIterations = "reached its limit of iterations"
	noProgress        = "found no less in %d rounds"
)

// exhausted returns the outcome of a loop that no step has exited.
func exhausted(name, why string, onMax grimoires.OnFail, last Outcome) Outcome {
	switch onMax {
	case grimoires.Continue:
		last.Verdict = Passed
	case grimoires.Fail:
		last.Verdict, last.Status = Stopped, event.StatusFailed
	default:
		last.Verdict, last.Status = Stopped, event.StatusBlocked
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
