package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/event"
)

// Replay implements Leaves with the results of earlier runs: a leaf with a recorded result is not called
// again.
type Replay struct {
	leaves  Leaves
	clock   Clock
	record  RecordFunc
	results map[string]event.Event // by path
	retried int64                  // number of the last retry, which restarted the clocks of steps
	renewed int64                  // number of the last retry with new settings: results before it had the inputs of the old ones
}

// RecordFunc makes the result of a leaf durable. It returns the result as a later replay will read it.
type RecordFunc func(path string, result event.Result) (event.Result, error)

// NewReplay returns a Replay for the history of a session. It passes calls without a recorded result to
// leaves, and their results to record.
func NewReplay(h *History, leaves Leaves, clock Clock, record RecordFunc) *Replay {
	results, retried, renewed := h.results()
	return &Replay{leaves: leaves, clock: clock, record: record, results: results, retried: retried, renewed: renewed}
}

// Do implements Leaves.
func (r *Replay) Do(ctx context.Context, c Call) (event.Result, error) {
	hash, err := c.hash()
	if err != nil {
		return event.Result{}, err
	}
	if e, ok := r.results[c.Path]; ok {
		result, err := r.replay(e, hash)
		if err == nil && e.Seq > r.retried {
			r.clock.charge(ctx, result.Used.Wall)
		}
		return result, err
	}
	result, err := r.work(ctx, c)
	if err != nil {
		return event.Result{}, err
	}
	result.Input, result.Tolerated = hash, c.Tolerated && !result.OK && !isFinal(result)
	return r.record(c.Path, result)
}

// work calls a leaf. If the time of a step is up, the leaf has failed.
func (r *Replay) work(ctx context.Context, c Call) (event.Result, error) {
	timed, worked := r.clock.measure(ctx)
	result, err := r.leaves.Do(timed, c)
	over := (*OverTimeError)(nil)
	if errors.As(err, &over) {
		result, err = event.Result{Error: over.Error(), ErrorType: event.ErrorTimeout, Used: result.Used}, nil
	}
	if err != nil {
		return event.Result{}, err
	}
	if !result.OK && over == nil && !isFinal(result) {
		errors.As(context.Cause(ctx), &over)
	}
	if over != nil {
		result.Over = over.key
	}
	result.Used.Wall += worked()
	return result, nil
}

// replay returns a recorded result. It fails if the leaf's input was different, unless the session has got new settings since.
func (r *Replay) replay(e event.Event, hash string) (event.Result, error) {
	var result event.Result
	if err := e.Decode(&result); err != nil {
		return event.Result{}, err
	}
	if result.Input != hash && e.Seq > r.renewed {
		return event.Result{}, fmt.Errorf("step %s was recorded with different input (%.12s, now %.12s): the plan or a recorded value changed; start the task again: coven reject, then coven run", e.Path, result.Input, hash)
	}
	return result, nil
}
