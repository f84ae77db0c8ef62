package evidence

import (
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Repeats returns how often, without interruption, the session has ended at the step and for the reason for which it ends now,
// and whether agents began new conversations since. stops are the events that count.
func (e Evidence) Repeats(step, reason string, stops ...event.Type) (times int, fresh bool) {
	began := false
	for _, end := range slices.Backward(e.Journal.All(append(stops, event.SessionResumed)...)) {
		if end.Type == event.SessionResumed {
			began = began || event.As[event.Resumed](end).Fresh
			continue
		}
		if stop := event.As[event.Ended](end); stop.Step != step || masked(stop.Reason) != masked(reason) {
			break
		}
		times, fresh = times+1, began
	}
	return times, fresh
}

// changing matches the words of a reason that differ each time, such as the ID of a request or a duration.
var changing = lazyregexp.New(`\S*\d\S*`)

func masked(reason string) string { return changing.ReplaceAllString(reason, "#") }
