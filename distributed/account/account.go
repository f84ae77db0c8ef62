// Package account is the limit of an account: a machine whose agent was refused by the API until a time lets the others know it, so that they wait without
// a refused call. There is one workflow for each limited account, whatever repositories the machines serve, until the limit ends.
//
// The name of an account is a hash that coven makes. A limit is never longer than the API said, and a machine that gets no answer goes on without.
package account

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// Names of the workflow, its queue, and its messages.
const (
	Name    = "Account"
	Queue   = "coven/accounts"
	limited = "limited" // signal: a Limit
	ask     = "ask"     // update: returns how long the limit still lasts
)

// A Limit is the end of a limit, as far as a machine knows it. The earlier one of both times counts: its clock may be wrong, and the signal may be received late.
type Limit struct {
	Until time.Time     `json:"until"` // by the machine's clock
	Left  time.Duration `json:"left"`  // when it was sent
}

// StickyTime is how long the machine that has decided last is asked first. It is a part of the time that a question may take, because that machine may be lost.
const StickyTime = 200 * time.Millisecond

// longest limits how long a limit lasts: one of a week is the longest that is known.
const longest = 30 * 24 * time.Hour

// Run is the workflow. Further signals may make the limit longer.
func Run(ctx workflow.Context, met Limit) error {
	r := &run{told: workflow.GetSignalChannel(ctx, limited)}
	r.add(workflow.Now(ctx), met)
	if err := workflow.SetUpdateHandler(ctx, ask, r.left); err != nil {
		return err
	}
	for {
		left, err := r.left(ctx)
		switch {
		case err != nil || left <= 0:
			return err
		case ending(ctx):
			return workflow.NewContinueAsNewError(ctx, Name, Limit{Until: r.until, Left: left})
		}
		if _, err := workflow.AwaitWithTimeout(ctx, left, func() bool { return r.told.Len() > 0 || ending(ctx) }); err != nil {
			return err
		}
	}
}

// ending reports whether the history is long.
func ending(ctx workflow.Context) bool { return workflow.GetInfo(ctx).GetContinueAsNewSuggested() }

// run is one execution of the workflow.
type run struct {
	until time.Time
	told  workflow.ReceiveChannel
}

// add takes a limit into account that was received now.
func (r *run) add(now time.Time, met Limit) {
	if end := now.Add(min(met.Until.Sub(now), met.Left, longest)); end.After(r.until) {
		r.until = end
	}
}

// left implements the update.
func (r *run) left(ctx workflow.Context) (time.Duration, error) {
	now := workflow.Now(ctx)
	for met := (Limit{}); r.told.ReceiveAsync(&met); met = (Limit{}) {
		r.add(now, met)
	}
	return max(r.until.Sub(now), 0), nil
}
