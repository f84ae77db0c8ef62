package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/server/servertest"
	"github.com/coven-run/coven/distributed/session"
)

// TestReplay replays the histories that TestRecord has recorded.
func TestReplay(t *testing.T) { servertest.Replay(t, session.Name, session.Run) }

// TestRecord runs a session on a real server, with a stretch that ends in each way, and records its history with RECORD=NAME.
func TestRecord(t *testing.T) {
	c, err := client.DialContext(t.Context(), options(t, servertest.Use(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := worker.New(c, session.Queue("acme/shop", 3, ""), worker.Options{Identity: "m1"})
	own := worker.New(c, session.OwnQueue("acme/shop", 3, "m1"), worker.Options{Identity: "m1", DisableWorkflowWorker: true})
	ends := make(chan end, 4)
	for _, e := range []end{
		{err: errors.New("no space left on device")},
		{stop: session.Stop{Status: session.Interrupted, Machine: "m1"}},
		{stop: session.Stop{Status: "waiting", Reason: "limit", Until: time.Now().Add(time.Second), Machine: "m1"}},
		{stop: session.Stop{Status: "waiting", Reason: "review", Machine: "m1"}},
	} {
		ends <- e
	}
	w.RegisterWorkflowWithOptions(session.Run, workflow.RegisterOptions{Name: session.Name})
	for _, one := range []worker.Worker{w, own} {
		one.RegisterActivityWithOptions(func(context.Context, session.Task) (session.Stop, error) {
			select {
			case e := <-ends:
				return e.stop, e.err
			default:
				return session.Stop{Over: true, Machine: "m1"}, nil
			}
		}, activity.RegisterOptions{Name: session.Stretch})
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.Stop)
	}
	start := client.StartWorkflowOptions{ID: task.ID(), TaskQueue: session.Queue("acme/shop", 3, "")}
	run, err := c.ExecuteWorkflow(t.Context(), start, session.Name, task)
	if err != nil {
		t.Fatal(err)
	}
	settle := func() (stop session.Stop) {
		t.Helper()
		u, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: task.ID(), UpdateName: session.Settle, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = u.Get(t.Context(), &stop)
		}
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	if stop := settle(); stop.Reason != "review" {
		t.Errorf("it rests for %q", stop.Reason)
	}
	if err := c.SignalWorkflow(t.Context(), task.ID(), "", session.Wake, nil); err != nil {
		t.Fatal(err)
	}
	var stop session.Stop
	if err := run.Get(t.Context(), &stop); err != nil || !stop.Over {
		t.Errorf("got %+v, %v", stop, err)
	}
	servertest.Record(t, c, task.ID())
}

func options(t *testing.T, s *servertest.Server) client.Options {
	t.Helper()
	o, err := servertest.Options(s.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return o
}
