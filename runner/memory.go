package runner

import (
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// remembered are the events of a journal without those of steps that a person
// wants to run again from a step on: what they recorded counts no more, nor does
// that they had begun.
func remembered(events []event.Event) []event.Event {
	kept := events
	for _, e := range events {
		var again event.Resumed
		if e.Type != event.SessionResumed || e.Decode(&again) != nil || !again.From {
			continue
		}
		first := begunAt(kept, again.Retry)
		if first == 0 {
			continue
		}
		var rest []event.Event
		for _, old := range kept {
			if old.Path == "" || old.Seq < first || old.Seq > e.Seq {
				rest = append(rest, old)
			}
		}
		kept = rest
	}
	return kept
}

// begunAt is the number of the event with which the step at path, or the first
// below it when it ends in a slash, began; 0: it did not.
func begunAt(events []event.Event, path string) int64 {
	for _, e := range events {
		if e.Type == event.StepStarted && meant(path, e.Path) {
			return e.Seq
		}
	}
	return 0
}

// meant says whether a path is the one that is named, or below it when that ends
// in a slash: an iteration of a loop.
func meant(named, path string) bool {
	return path == named || strings.HasSuffix(named, "/") && strings.HasPrefix(path, named)
}
