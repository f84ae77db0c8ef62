package runner

import (
	"cmp"
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

// RunSteps runs the tree of a plan, or the rest of it: leaves with a result in the journal are not called
// again. exited may be nil; see engine.Options.
func RunSteps(ctx context.Context, plan *grimoires.Plan, j *Journal, leaves engine.Leaves, exited func(step string, reason engine.ExitReason, path string)) (engine.Outcome, error) {
	state := engine.NewState(Recorded(j, leaves), plan, engine.Options{Clock: clock, Exited: exited})
	out, err := engine.Build(plan).Run(ctx, state)
	out.Result.Summary = cmp.Or(out.Result.Summary, state.Summary())
	return out, err
}

// Recorded returns leaves that use the results in a journal. If a leaf has no result there, they call
// leaves and record the result.
func Recorded(j *Journal, leaves engine.Leaves) (replay *engine.Replay) {
	record := func(path string, r event.Result) (event.Result, error) {
		if err := j.Append(event.Event{Type: event.StepCompleted, Path: path}, r); err != nil {
			return event.Result{}, err
		}
		return j.completed(path)
	}
	j.past(func(h *engine.History) { replay = engine.NewReplay(h, leaves, clock, record) })
	return replay
}

// completed returns a result as read from the journal, with masked secrets, so that a replay reads the
// same.
func (j *Journal) completed(path string) (r event.Result, err error) {
	e, _ := j.lastAt(path, event.StepCompleted)
	return r, e.Decode(&r)
}

// clock measures working time without waits.
var clock = engine.Clock{Limit: workclock.Limit, Measure: workclock.Measure, Charge: workclock.Charge}
