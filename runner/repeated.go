package runner

import (
	"slices"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// instead returns the command to recommend for the end of a run, instead of next: a command that has just failed is not
// recommended again.
func (r *Runner) instead(o Outcome) string {
	times, fresh := r.repeats(o.Step, o.Detail, event.SessionBlocked, event.SessionFailed)
	started, _ := r.Journal.lastAt(o.Step, event.StepStarted)
	kind := event.As[event.StepStart](started).Kind
	switch {
	case times == 0, o.Next == check.Change:
		return o.Next
	case kind == "agent" && fresh:
		return r.command("cancel")
	case kind == "agent":
		return r.command("retry --fresh")
	case kind == "script", kind == "setup":
		return r.command("logs")
	}
	return r.command("review")
}

// repeats returns how often, without interruption, the session has ended at the step and for the reason for which it ends now,
// and whether agents began new conversations since. stops are the events that count.
func (r *Runner) repeats(step, reason string, stops ...event.Type) (times int, fresh bool) {
	began := false
	for _, e := range slices.Backward(r.Journal.All(append(stops, event.SessionResumed)...)) {
		if e.Type == event.SessionResumed {
			began = began || event.As[event.Resumed](e).Fresh
			continue
		}
		if stop := event.As[event.Ended](e); stop.Step != step || masked(stop.Reason) != masked(reason) {
			break
		}
		times, fresh = times+1, began
	}
	return times, fresh
}

// changing matches the words of a reason that differ each time, such as the ID of a request or a duration.
var changing = lazyregexp.New(`\S*\d\S*`)

func masked(reason string) string { return changing.ReplaceAllString(reason, "#") }
