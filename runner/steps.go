package runner

import (
	"context"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// RunSteps runs the tree of a plan, or what is left of it: leaves whose result is in
// the journal are not asked again. exited may be nil; see Options.
func RunSteps(ctx context.Context, plan *grimoires.Plan, j journal, leaves engine.Leaves, exited func(step string, reason engine.ExitReason, path string)) (engine.Outcome, error) {
	state := engine.NewState(Recorded(j, leaves), plan, engine.Options{Clock: workClock(), Exited: exited})
	out, err := engine.Build(plan).Run(ctx, state)
	if out.Result.Summary == "" {
		out.Result.Summary = state.Summary()
	}
	return out, err
}

// Recorded returns leaves that answer from a journal what they can, and record what
// they ask others.
func Recorded(j journal, leaves engine.Leaves) *engine.Replay {
	return engine.NewReplay(j.Events(), leaves, workClock(), func(path string, r engine.Result) (engine.Result, error) {
		if err := j.Append(event.Event{Type: event.StepCompleted, Path: path}, r); err != nil {
			return engine.Result{}, err
		}
		return completed(j, path, r)
	})
}

// completed returns a result as the journal has it, which is what a replay will
// read: the journal masks secrets.
func completed(j journal, path string, r engine.Result) (engine.Result, error) {
	for _, e := range slices.Backward(j.Events()) {
		if e.Type == event.StepCompleted && e.Path == path {
			r = engine.Result{}
			return r, e.Decode(&r)
		}
	}
	return r, nil
}
