package runner

import (
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/runner/engine"
)

// Journal is the journal of a session with an index of its events, which the runner and the executor share.
// The index reads each event once, including events that other parts of the program append. Leaves may use
// it concurrently.
type Journal struct {
	journal

	mu       sync.Mutex
	history  engine.History
	findings findings.Log
}

// NewJournal returns a Journal that writes to j.
func NewJournal(j journal) *Journal { return &Journal{journal: j} }

// past calls ask with the history up to now. h is valid until ask returns.
func (j *Journal) past(ask func(h *engine.History)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history.Read(j.Events())
	ask(&j.history)
}

// All returns the events of the given types, including those that a retry discarded.
func (j *Journal) All(types ...event.Type) (found []event.Event) {
	j.past(func(h *engine.History) { found = h.All(types...) })
	return found
}

// has reports whether there is an event of one of the types.
func (j *Journal) has(types ...event.Type) (ok bool) {
	j.past(func(h *engine.History) { ok = h.Has(types...) })
	return ok
}

// Last returns the last event of the given types, including those that a retry discarded.
func (j *Journal) Last(types ...event.Type) (e event.Event, ok bool) {
	j.past(func(h *engine.History) { e, ok = h.Last(types...) })
	return e, ok
}

// At returns the events of the given types at a path, without those that a retry discarded.
func (j *Journal) At(path string, types ...event.Type) (found []event.Event) {
	j.past(func(h *engine.History) { found = h.At(path, types...) })
	return found
}

// lastAt returns the last event of the given types at a path, without those that a retry discarded.
func (j *Journal) lastAt(path string, types ...event.Type) (e event.Event, ok bool) {
	found := j.At(path, types...)
	if len(found) == 0 {
		return event.Event{}, false
	}
	return found[len(found)-1], true
}

// starts returns the starts of all attempts of a leaf, without those that a retry discarded.
func (j *Journal) starts(path string) (found []event.Event) {
	j.past(func(h *engine.History) { found = h.Starts(path) })
	return found
}

func (j *Journal) openFindings() ([]event.Finding, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.findings.Read(j.Events())
	return j.findings.Open(), err
}
