package session_test

import (
	"encoding/json"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A rejected session is recognized by its record, not by the reason.
func TestRejected(t *testing.T) {
	for name, test := range map[string]struct {
		end  event.Type
		data string
		want bool
	}{
		"rejected":            {event.SessionFailed, `{"reason":"rejected: no","rejected":true}`, true},
		"a step failed":       {event.SessionFailed, `{"reason":"step a failed","step":"a#1"}`, false},
		"a step, by its text": {event.SessionFailed, `{"reason":"rejected: no","step":"a#1"}`, false},
		"cancelled":           {event.SessionCancelled, `{"reason":"rejected: no"}`, false},
	} {
		started := event.Event{Seq: 1, Type: event.SessionStarted, Data: json.RawMessage(`{}`)}
		v, err := session.Fold([]event.Event{started, {Seq: 2, Type: test.end, Data: json.RawMessage(test.data)}})
		if err != nil || v.Rejected != test.want {
			t.Errorf("%s: %v %v", name, v.Rejected, err)
		}
	}
}
