package account_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/account"
	"github.com/coven-run/coven/distributed/server/servertest"
	"github.com/coven-run/coven/distributed/session"
)

// TestReplay replays the histories that TestServer has recorded.
func TestReplay(t *testing.T) { servertest.Replay(t, account.Name, account.Run) }

// Machines know on a real server until when an account is limited. Without the server, or without a machine that decides, no account is.
func TestServer(t *testing.T) {
	s := servertest.Use(t)
	c := s.Dial(t)
	limits := &account.Limits{Client: c}
	none := func(name string) {
		t.Helper()
		if until := limits.Until(t.Context(), name); !until.IsZero() {
			t.Errorf("%s is limited until %s", name, until)
		}
	}
	none("a")
	until := time.Now().Add(time.Hour)
	limits.Tell(t.Context(), "a", until)
	none("a")
	w := worker.New(c, account.Queue, worker.Options{Identity: "m1", LocalActivityWorkerOnly: true, StickyScheduleToStartTimeout: account.StickyTime})
	w.RegisterWorkflowWithOptions(account.Run, workflow.RegisterOptions{Name: account.Name})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	got := time.Time{}
	for tries := 0; got.IsZero() && tries < 20; tries++ { // the first answer may be late
		got = limits.Until(t.Context(), "a")
	}
	if late := got.Sub(until); late < -time.Minute || late > time.Minute {
		t.Errorf("limited until %s, not %s", got, until)
	}
	none("b")
	limits.Tell(t.Context(), "a", until.Add(time.Hour))
	if got := limits.Until(t.Context(), "a"); !got.IsZero() && got.Sub(until) < 59*time.Minute {
		t.Errorf("limited until %s, after %s was told", got, until.Add(time.Hour))
	}
	servertest.Record(t, c, session.Plain("account/a"))
	limits.Tell(t.Context(), "c", time.Now().Add(-time.Second))
	none("c")

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	none("a")
}
