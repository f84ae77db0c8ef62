package turn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/server/servertest"
	"github.com/coven-run/coven/distributed/session"
)

// TestReplay replays the histories that TestServer has recorded.
func TestReplay(t *testing.T) { servertest.Replay(t, Name, Run) }

// Sessions on a real server land one at a time. Without the server, they land at once.
func TestServer(t *testing.T) {
	s := servertest.Use(t)
	c := s.Dial(t)
	w := worker.New(c, session.Queue("acme/shop", 3, ""), worker.Options{Identity: "m1"})
	w.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: Name})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)

	const sessions = 6
	var landing, landed atomic.Int32
	var all sync.WaitGroup
	for n := range sessions {
		all.Go(func() {
			release := Take(t.Context(), c, session.Task{Repository: "acme/shop", Task: fmt.Sprint("bd-", n), Plan: 3, Heartbeat: time.Minute}, "origin/main")
			if others := landing.Add(1); others != 1 {
				t.Errorf("%d sessions land at once", others)
			}
			answer(t.Context(), c) // others would have the time to land
			landed.Add(1)
			landing.Add(-1)
			release()
		})
	}
	all.Wait()
	if landed.Load() != sessions {
		t.Errorf("%d sessions have landed", landed.Load())
	}

	servertest.Record(t, c, session.Queue("acme/shop", 3, "")+session.Plain("/turn/origin/main"))

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	Take(t.Context(), c, session.Task{Repository: "acme/shop", Task: "bd-9", Plan: 3, Heartbeat: time.Second}, "origin/main")()
}

// answer lets the server answer once.
func answer(ctx context.Context, c client.Client) {
	_, _ = c.CheckHealth(ctx, nil) // its answer does not matter
}
