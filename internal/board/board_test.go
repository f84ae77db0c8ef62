package board

import (
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A session is in the section of NeedsYou if it does not go on without a person, and leaves the board a day after it is completed.
func TestSections(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.Local)
	view := func(status event.Status, reason event.WaitReason, ended time.Time) session.View {
		v := session.View{ID: "s", Task: "t"}
		v.Status, v.Reason, v.Ended = status, reason, ended
		return v
	}
	parked := view(session.Running, "", time.Time{})
	parked.Parked = &event.Limit{At: now.Add(time.Hour)}
	rejected := view(session.Failed, "", now)
	rejected.Rejected = true
	for _, test := range []struct {
		name  string
		view  session.View
		shown bool
		in    Section
		text  string
	}{
		{"running", view(session.Running, "", time.Time{}), true, Running, ""},
		{"parked", parked, true, Waiting, "continues at 16:00:00"},
		{"review", view(session.Waiting, event.WaitReview, time.Time{}), true, NeedsYou, ""},
		{"budget", view(session.Waiting, event.WaitBudget, time.Time{}), true, NeedsYou, ""},
		{"checkout", view(session.Waiting, event.WaitCheckout, time.Time{}), true, NeedsYou, ""},
		{"message", view(session.Waiting, event.WaitMessage, time.Time{}), true, NeedsYou, ""},
		{"dependency", view(session.Waiting, event.WaitDependency, time.Time{}), true, Waiting, ""},
		{"worker", view(session.Waiting, event.WaitWorker, time.Time{}), true, Waiting, ""},
		{"blocked", view(session.Blocked, "", time.Time{}), true, NeedsYou, ""},
		{"interrupted", view(session.Interrupted, "", time.Time{}), true, NeedsYou, ""},
		{"damaged", view(session.Damaged, "", time.Time{}), true, NeedsYou, ""},
		{"gone", view(session.Gone, "", time.Time{}), true, NeedsYou, ""},
		{"failed", view(session.Failed, "", now), true, NeedsYou, ""},
		{"rejected", rejected, false, NeedsYou, ""},
		{"cancelled", view(session.Cancelled, "", now), false, NeedsYou, ""},
		{"completed", view(session.Completed, "", now.Add(-time.Hour)), true, Landed, "nothing changed"},
		{"yesterday", view(session.Completed, "", now.Add(-16*time.Hour)), false, Landed, "nothing changed"},
	} {
		if shown := isShown(test.view, now); shown != test.shown {
			t.Errorf("%s: shown %v", test.name, shown)
		}
		if c := cardOf(test.view, nil, now); test.shown && (c.Section != test.in || c.Text != test.text) {
			t.Errorf("%s: in %s: %q", test.name, c.Section, c.Text)
		}
	}
}
