package board

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A snoozed question waits until its time is over, until a person wakes it, or until it is another one.
func TestSnooze(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.Local)
	v := session.View{ID: "s", Task: "t", Dir: t.TempDir()}
	v.Status, v.Reason, v.Updated = session.Waiting, event.WaitReview, now
	section := func(v session.View, at time.Time) Section { return cardOf(v, nil, at).sleep(at).Section }
	if section(v, now) != NeedsYou {
		t.Error("snoozed without a file")
	}
	if err := Snooze(v, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c := cardOf(v, nil, now).sleep(now); c.Section != Waiting || !c.Snoozed || c.Text != "snoozed until 16:00:00: " || !c.Wakes.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", c)
	}
	if section(v, now.Add(time.Hour)) != NeedsYou {
		t.Error("the time did not end it")
	}
	again := v
	again.Updated = now.Add(time.Minute)
	if section(again, now) != NeedsYou {
		t.Error("another question did not end it")
	}
	if err := Snooze(v, time.Time{}); err != nil || section(v, now.Add(1000*time.Hour)) != Waiting {
		t.Error(err, "it is not snoozed until it changes")
	}
	if err := os.WriteFile(filepath.Join(v.Dir, snoozedFile), []byte(`{"question`), 0o600); err != nil || section(v, now) != NeedsYou {
		t.Error(err, "a damaged file hides the question")
	}
	for range 2 {
		if err := Wake(v); err != nil || section(v, now) != NeedsYou {
			t.Error(err, "not awake")
		}
	}
	running := v
	running.Status = session.Running
	if Snooze(running, now) == nil {
		t.Error("a running task was snoozed")
	}
	running.Approvals = []session.Approval{{Approval: event.Approval{N: 1}}}
	if err := Snooze(running, time.Time{}); err != nil {
		t.Fatal(err)
	}
	running.Updated = now.Add(time.Hour) // other agents of the session go on
	if section(running, now) != Waiting {
		t.Error("an event is another question")
	}
	running.Approvals[0].N = 2
	if section(running, now) != NeedsYou {
		t.Error("the next approval is hidden")
	}
}
