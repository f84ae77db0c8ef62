package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// History is an index of the events of a session. When a user retries from a step, it discards the results
// and starts that were recorded since the start of that step. The zero value has no events.
type History struct {
	index     event.Index
	starts    map[string][]event.Event // starts of leaves, by path without the attempt
	discarded []span
}

// span is an inclusive range of event numbers.
type span struct{ first, last int64 }

// Read adds new events. events must begin with those that were read before.
func (h *History) Read(events []event.Event) {
	read := h.index.Len()
	h.index.Read(events)
	for _, e := range events[read:] {
		switch e.Type {
		case event.StepStarted:
			if h.starts == nil {
				h.starts = map[string][]event.Event{}
			}
			leaf := withoutAttempt(e.Path)
			h.starts[leaf] = append(h.starts[leaf], e)
		case event.SessionResumed:
			h.discard(e)
		}
	}
}

// discard discards the records of the steps that a retry runs again.
func (h *History) discard(retry event.Event) {
	var r event.Resumed
	if retry.Decode(&r) != nil || !r.From {
		return
	}
	for _, start := range h.index.Of(event.StepStarted) {
		if start.Seq < retry.Seq && h.counts(start) && retries(r.Retry, start.Path) {
			h.discarded = append(h.discarded, span{start.Seq, retry.Seq})
			return
		}
	}
}

// counts reports whether an event has not been discarded. Events without a path always count, because they
// belong to no step. So do the events of a setup, because it belongs to the worktree, which a retry keeps.
func (h *History) counts(e event.Event) bool {
	return e.Path == "" || event.IsSetup(e.Path) || !slices.ContainsFunc(h.discarded, func(s span) bool { return s.first <= e.Seq && e.Seq <= s.last })
}

func (h *History) counting(events []event.Event) []event.Event {
	if len(h.discarded) == 0 {
		return events
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return !h.counts(e) })
}

// All returns the events of the given types, including discarded ones.
func (h *History) All(types ...event.Type) []event.Event { return h.index.Of(types...) }

// Has reports whether there is an event of one of the types.
func (h *History) Has(types ...event.Type) bool { return h.index.Has(types...) }

// Last returns the last event of the given types, even if it has been discarded.
func (h *History) Last(types ...event.Type) (event.Event, bool) { return h.index.Last(types...) }

// At returns the events of the given types at a path, without discarded ones.
func (h *History) At(path string, types ...event.Type) []event.Event {
	return h.counting(h.index.At(path, types...))
}

// Starts returns the starts of all attempts of the leaf at path, without discarded ones.
func (h *History) Starts(path string) []event.Event {
	return h.counting(h.starts[withoutAttempt(path)])
}

// withoutAttempt removes the attempt number from the path of a leaf.
func withoutAttempt(path string) string { return path[:max(strings.LastIndexByte(path, '#'), 0)] }

// results returns the recorded results by path, without discarded ones, the number of the last retry,
// which restarted the clocks of steps, and that of the last retry with new settings.
func (h *History) results() (results map[string]event.Event, retried, renewed int64) {
	results = map[string]event.Event{}
	for _, e := range h.index.Of(event.StepCompleted, event.SessionResumed) {
		if e.Type == event.StepCompleted {
			if h.counts(e) {
				results[e.Path] = e
			}
			continue
		}
		var r event.Resumed
		if e.Decode(&r) != nil {
			continue
		}
		if len(r.Settings) > 0 {
			renewed = e.Seq
		}
		if slices.Contains(r.Settings, event.WorktreeSettings) { // another setup has not run yet
			maps.DeleteFunc(results, func(path string, _ event.Event) bool { return event.IsSetup(path) })
		}
		if r.Retry == "" {
			continue
		}
		retried = e.Seq
		for path := range results {
			if retries(r.Retry, path) {
				delete(results, path)
			}
		}
	}
	return results, retried, renewed
}

// iteration splits the name of a loop's iteration: "a[1]/b[3]/" is the third iteration of "a[1]/b".
var iteration = lazyregexp.New(`^(.*)\[(\d+)\]/$`)

// retries reports whether a retry of the step retried runs the leaf at path again. A name that ends with a
// slash is an iteration of a loop: it includes everything inside it, and all later iterations.
func retries(retried, path string) bool {
	if path == retried || strings.HasSuffix(retried, "/") && strings.HasPrefix(path, retried) {
		return true
	}
	of := iteration.FindStringSubmatch(retried)
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
