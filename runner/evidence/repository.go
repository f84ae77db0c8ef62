package evidence

import (
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// Unstopped returns the last recorded change of the repository that should have stopped a step but has not, because the
// session was interrupted. It returns nil if there is none.
func (e Evidence) Unstopped() *event.RepositoryChange {
	for _, changed := range slices.Backward(e.Journal.All(event.RepositoryChanged)) {
		change := event.As[event.RepositoryChange](changed)
		if change.Severity != event.SeverityStops {
			continue
		}
		if e.stoppedSince(changed.Seq) {
			return nil
		}
		return &change
	}
	return nil
}

// stoppedSince reports whether a change of the repository stopped a leaf after an event.
func (e Evidence) stoppedSince(seq int64) bool {
	for _, ended := range slices.Backward(e.Journal.All(event.StepCompleted)) {
		if ended.Seq < seq {
			return false
		}
		if IsStop(ended) {
			return true
		}
	}
	return false
}

// IsStop reports whether an event is the result of a leaf that a change of the repository stopped.
func IsStop(e event.Event) bool {
	return e.Type == event.StepCompleted && event.As[event.Result](e).ErrorType == event.ErrorRepository
}

// Holding describes the changes of the repository since the last landing that a person must decide about. since is the number
// of the last one: earlier answers do not count.
func (e Evidence) Holding() (what string, since int64) {
	landed := int64(0)
	for _, done := range e.Journal.All(event.LandDone) {
		landed = done.Seq
	}
	var all []string
	for _, changed := range e.Journal.All(event.RepositoryChanged) {
		change := event.As[event.RepositoryChange](changed)
		if changed.Seq < landed || change.Severity != event.SeverityHolds {
			continue
		}
		since = changed.Seq
		if text := change.Summary() + change.Undo(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; "), since
}
