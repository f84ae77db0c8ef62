package turn

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/session"
)

// Take waits until it is the turn of a session to land on a branch, or until an answer is late: the server is away, or the machine that has the workflow. The turn
// lasts until release is called; then another session has it.
func Take(ctx context.Context, c client.Client, t session.Task, branch string) (release func()) {
	q := &place{client: c, task: t, queue: session.Queue(t.Repository, t.Plan, ""), branch: branch}
	for {
		before, err := q.ask(ctx)
		if err != nil || before < 0 {
			return func() { q.leave(ctx) } // it may have a place
		}
		if before == 0 {
			break
		}
	}
	holding, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.hold(holding)
	}()
	return func() {
		stop()
		<-done
		q.leave(ctx)
	}
}

// place is the place of a session in the queue of a branch.
type place struct {
	client        client.Client
	task          session.Task
	queue, branch string
	near          bool // at most one session was before it
}

// id returns the ID of the workflow. Machines with different versions of plans have different turns, because they poll different queues.
func (q *place) id() string { return q.queue + session.Plain("/turn/"+q.branch) }

// late is how long an answer may take longer than it should.
const late = 2 * time.Second

// tries is the number of attempts to reach a workflow that was just ending.
const tries = 3

// ask confirms the place of the session, and returns the number of those before it.
func (q *place) ask(ctx context.Context) (before int, err error) {
	wait := q.task.Heartbeat
	if q.near {
		wait = min(wait, Grip)
	}
	ctx, cancel := context.WithTimeout(ctx, wait/answers+late)
	defer cancel()
	for range tries {
		start := q.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
			ID: q.id(), TaskQueue: q.queue, WorkflowTaskTimeout: session.DecisionTime,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		}, Name, q.task.Heartbeat, []Place(nil))
		var update client.WorkflowUpdateHandle
		update, err = q.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: start,
			UpdateOptions:          client.UpdateWorkflowOptions{UpdateName: ask, Args: []any{q.task.Task}, WaitForStage: client.WorkflowUpdateStageCompleted},
		})
		if err == nil {
			err = update.Get(ctx, &before)
		}
		if !errors.As(err, new(*serviceerror.NotFound)) {
			q.near = before < front
			return before, err
		}
	}
	return 0, err
}

// hold confirms the place until ctx ends.
func (q *place) hold(ctx context.Context) {
	again := time.NewTicker(min(Grip, q.task.Heartbeat) / answers)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			_, _ = q.ask(ctx) // without an answer, the turn ends
		case <-ctx.Done():
			return
		}
	}
}

// leave gives the place up. If that fails, it ends by itself.
func (q *place) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.task.Heartbeat/answers)
	defer cancel()
	_ = q.client.SignalWorkflow(ctx, q.id(), "", leave, q.task.Task)
}
