package servertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/server/servertest"
)

const queue = "tasks"

// wait is a workflow that ends with the value of the signal "answer".
func wait(ctx workflow.Context) (string, error) {
	var answer string
	workflow.GetSignalChannel(ctx, "answer").Receive(ctx, &answer)
	return answer, nil
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// dial connects with the variables TEMPORAL_... of a client.
func dial(t *testing.T, environ []string) client.Client {
	t.Helper()
	options, err := servertest.Options(environ)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.DialContext(testContext(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// startWorker runs a worker until the test's end.
func startWorker(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(wait)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func begin(t *testing.T, c client.Client, id string) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, wait)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func answer(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	ctx := testContext(t)
	if err := c.SignalWorkflow(ctx, run.GetID(), "", "answer", "yes"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(ctx, &got); err != nil || got != "yes" {
		t.Fatalf("the workflow ends with %q, %v", got, err)
	}
}

// TestKilled kills the server between a workflow's start and its end. Client and worker stay.
func TestKilled(t *testing.T) {
	s := servertest.Use(t)
	address := s.Address()
	c := dial(t, s.Environ())
	startWorker(t, c)
	answer(t, c, begin(t, c, "one"))
	before := begin(t, c, "two")
	rss, err := s.RSS()
	if err != nil || rss < 10<<20 || rss > 500<<20 {
		t.Errorf("the server uses %d bytes, %v", rss, err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a running server was started again")
	}

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RSS(); err == nil {
		t.Error("the killed server has memory")
	}
	began := time.Now()
	if err := s.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB; back after %v", rss>>20, time.Since(began).Round(time.Millisecond))
	if s.Address() != address {
		t.Errorf("the server moved from %s to %s", address, s.Address())
	}
	answer(t, c, before)
	answer(t, c, begin(t, c, "three"))
}

func TestNotBuilt(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("COVEN_TEMPORAL_SERVER", "")
	if _, err := servertest.Start(t.Context(), t.TempDir()); !errors.Is(err, servertest.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

func TestDoesNotStart(t *testing.T) {
	t.Setenv("COVEN_TEMPORAL_SERVER", "false")
	if _, err := servertest.Start(testContext(t), t.TempDir()); err == nil {
		t.Error("it started")
	}
}

// TestPayloads checks that the server refuses a prompt or a log.
func TestPayloads(t *testing.T) {
	refusesLargePayloads(t, dial(t, servertest.Use(t).Environ()))
}

func refusesLargePayloads(t *testing.T, c client.Client) {
	t.Helper()
	run := begin(t, c, "large")
	err := c.SignalWorkflow(testContext(t), run.GetID(), "", "answer", strings.Repeat("x", 70_000))
	var invalid *serviceerror.InvalidArgument
	if !errors.As(err, &invalid) {
		t.Errorf("a payload of 70 kB: %v", err)
	}
}
