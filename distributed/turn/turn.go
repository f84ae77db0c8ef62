// Package turn is the turn of sessions to land on a branch: only one machine at a time brings its change up to date, checks it, and
// lands it. Without turns, machines would check their changes at once, and all but the first would check again.
//
// A turn excludes no one: the push of the landing does. So a machine that gets no answer lands without a turn, and the turn of a silent one
// ends.
package turn

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the workflow and its messages. There is one for each branch, until no session waits.
const (
	Name  = "Turn"
	ask   = "ask"   // update: takes a place in the queue or confirms it; returns the number of sessions before it
	leave = "leave" // signal: gives the turn or the place up
)

// A Place is that of a session in the queue.
type Place struct {
	Task  string    `json:"task"`
	Until time.Time `json:"until"` // the session asks again before that, or loses the place
}

// Grip is how long the first two places last unless their sessions ask again: all wait for them. answers is how often a session asks while its place lasts.
const (
	Grip    = 3 * time.Second
	answers = 3
)

// front is the number of places that last for Grip only. So a session that is gone is found while the one before it lands.
const front = 2

// Run is the workflow. Other places last for the lease. queue has the places so far, after the workflow was continued as new.
func Run(ctx workflow.Context, lease time.Duration, queue []Place) error {
	r := &run{lease: lease, queue: queue}
	if err := workflow.SetUpdateHandler(ctx, ask, r.ask); err != nil {
		return err
	}
	left := workflow.GetSignalChannel(ctx, leave)
	for {
		changed := func() bool { return r.changed || left.Len() > 0 }
		if _, err := workflow.AwaitWithTimeout(ctx, r.pause(ctx), changed); err != nil {
			return err
		}
		r.changed = false
		for task := ""; left.ReceiveAsync(&task); {
			r.drop(func(p Place) bool { return p.Task == task })
		}
		r.drop(func(p Place) bool { return !p.Until.After(workflow.Now(ctx)) })
		for at := range r.queue[:min(front, len(r.queue))] { // those that have moved up
			r.queue[at].Until = r.until(ctx, at, r.queue[at].Until)
		}
		r.ending = workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		if len(r.queue) > 0 && !r.ending || !workflow.AllHandlersFinished(ctx) {
			continue
		}
		if len(r.queue) == 0 {
			return nil
		}
		return workflow.NewContinueAsNewError(ctx, Name, r.lease, r.queue)
	}
}

// run is one execution of the workflow.
type run struct {
	lease   time.Duration
	queue   []Place // the first one has the turn
	changed bool    // since the workflow has looked
	ending  bool    // everyone gets an answer
}

func (r *run) drop(left func(Place) bool) { r.queue = slices.DeleteFunc(r.queue, left) }

// pause returns the time until the first place ends.
func (r *run) pause(ctx workflow.Context) time.Duration {
	next := r.lease
	for _, p := range r.queue {
		next = min(next, p.Until.Sub(workflow.Now(ctx)))
	}
	return max(next, time.Millisecond)
}

// ask implements the update.
func (r *run) ask(ctx workflow.Context, task string) (int, error) {
	if task == "" {
		return 0, temporal.NewApplicationError("a task without a name", "")
	}
	at := r.place(task)
	if at < 0 {
		at, r.queue = len(r.queue), append(r.queue, Place{Task: task})
	}
	r.queue[at].Until = r.until(ctx, at, workflow.Now(ctx).Add(r.lease))
	moved := func() bool { return r.ending || r.place(task) < min(max(at, 1), front) }
	_, err := workflow.AwaitWithTimeout(ctx, r.queue[at].Until.Sub(workflow.Now(ctx))/answers, moved)
	r.changed = true
	return r.place(task), err
}

// until returns when a place ends that would last until a time.
func (r *run) until(ctx workflow.Context, at int, last time.Time) time.Time {
	if first := workflow.Now(ctx).Add(min(Grip, r.lease)); at < front && first.Before(last) {
		return first
	}
	return last
}

// place returns the number of sessions before one, or -1 if it has no place.
func (r *run) place(task string) int {
	return slices.IndexFunc(r.queue, func(p Place) bool { return p.Task == task })
}
