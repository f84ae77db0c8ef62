package engine

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// Remembered returns the events that count after retries: without those of steps that
// run again since a retry. Their recorded results are discarded, and so are their starts.
func Remembered(events []event.Event) []event.Event {
	kept := events
	for _, e := range events {
		var again event.Resumed
		if e.Type != event.SessionResumed || e.Decode(&again) != nil || !again.From {
			continue
		}
		first := startOf(kept, again.Retry)
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

// startOf is the number of the event with which the step at path, or the first
// below it when it ends in a slash, began; 0: it did not.
func startOf(events []event.Event, path string) int64 {
	for _, e := range events {
		if e.Type == event.StepStarted && meant(path, e.Path) {
			return e.Seq
		}
	}
	return 0
}

// iteration splits the name of an iteration of a loop: "a[1]/b[3]/" is the third of
// "a[1]/b".
var iteration = regexp.MustCompile(`^(.*)\[(\d+)\]/$`)

// meant reports whether a path is the named one. A name that ends in a slash is an
// iteration of a loop: it means all below it, and the iterations after it.
func meant(named, path string) bool {
	if path == named || strings.HasSuffix(named, "/") && strings.HasPrefix(path, named) {
		return true
	}
	of := iteration.FindStringSubmatch(named)
	if of == nil {
		return false
	}
	rest, ok := strings.CutPrefix(path, of[1]+"[")
	number, _, closed := strings.Cut(rest, "]/")
	if !ok || !closed {
		return false
	}
	first, _ := strconv.Atoi(of[2])
	n, err := strconv.Atoi(number)
	return err == nil && n > first
}
