package event_test

import (
	"testing"

	"github.com/coven-run/coven/internal/event"
)

// A session works after it was created or resumed, or its messages were summarized: the clocks of its budget run.
func TestStops(t *testing.T) {
	for _, goes := range []event.Type{event.SessionStarted, event.SessionCreated, event.SessionResumed, event.SessionCompacted, event.StepCompleted} {
		if goes.Stops() {
			t.Errorf("%s stops the session", goes)
		}
	}
	for _, ends := range []event.Type{event.SessionWaiting, event.SessionCompleted, event.SessionFailed, event.SessionBlocked, event.SessionCancelled, event.SessionStopped} {
		if !ends.Stops() {
			t.Errorf("%s does not stop the session", ends)
		}
	}
}
