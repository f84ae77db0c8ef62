// Package desk hands sessions to workers, for the coven of a person. See package internal/control/fleet of coven for the other side.
//
// Requests and replies are lines of JSON. A request to run a session starts its workflow, or wakes it; the reply comes when no machine runs the session and only
// a person can continue it. If the server does not answer, requests wait for it.
package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/coven-run/coven/distributed/connect"
	"github.com/coven-run/coven/distributed/session"
)

// Request is a line that coven writes.
type Request struct {
	Number  int    `json:"number"`
	Op      string `json:"op"` // run, recall or check
	Task    string `json:"task"`
	Remote  string `json:"remote"` // name of the git remote
	Ref     string `json:"ref"`
	Plan    int    `json:"plan"`
	Needs   string `json:"needs"`
	Prefers string `json:"prefers"`
	Cost    int    `json:"cost"`
}

// Reply is the line that answers a request.
type Reply struct {
	Number int    `json:"number"`
	Status string `json:"status,omitempty"` // of a session that is over; empty if it is unknown
	Error  string `json:"error,omitempty"`
}

// A Desk serves one coven.
type Desk struct {
	Client     client.Client
	Repository func(remote string) (string, error) // name of the one of a git remote
	Heartbeat  time.Duration

	reached atomic.Bool // the namespace was there

	mu  sync.Mutex // of the output
	out io.Writer
}

// Serve answers requests until the input ends.
func (d *Desk) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	d.out = out
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a request is no JSON: %w", err)
		}
		go d.answer(ctx, r)
	}
	return lines.Err()
}

// answer answers one request.
func (d *Desk) answer(ctx context.Context, r Request) {
	reply := Reply{Number: r.Number}
	stop, err := d.do(ctx, r)
	if err != nil {
		reply.Error = err.Error()
	}
	if stop.Over {
		reply.Status = stop.Status
	}
	line, err := json.Marshal(reply)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.Write(append(line, '\n')) // without a reader, coven is gone
}

func (d *Desk) do(ctx context.Context, r Request) (session.Stop, error) {
	if r.Op == "check" {
		return session.Stop{}, d.check(ctx)
	}
	repository, err := d.Repository(r.Remote)
	if err != nil {
		return session.Stop{}, err
	}
	t := session.Task{Repository: repository, Task: r.Task, Ref: r.Ref, Plan: r.Plan, Needs: r.Needs, Prefers: r.Prefers, Cost: r.Cost, Heartbeat: d.Heartbeat}
	switch r.Op {
	case "run":
		return d.run(ctx, t)
	case "recall":
		return session.Stop{}, d.recall(ctx, t)
	}
	return session.Stop{}, fmt.Errorf("%q is not a request", r.Op)
}

// check returns an error unless the server answers and has the namespace.
func (d *Desk) check(ctx context.Context) error {
	err := d.again(ctx, func() error {
		_, err := d.Client.DescribeWorkflow(ctx, "no session", "")
		return err
	})
	if errors.As(err, new(*serviceerror.NamespaceNotFound)) {
		return fmt.Errorf("%w To make it: coven worker namespace", err)
	}
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil
	}
	return err
}

// run starts or wakes a session, and waits until it rests or is over. If the server loses its state, run starts the session again.
func (d *Desk) run(ctx context.Context, t session.Task) (stop session.Stop, err error) {
	options := client.StartWorkflowOptions{
		ID: t.ID(), TaskQueue: session.Queue(t.Repository, t.Plan, ""),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowTaskTimeout:   session.DecisionTime,
		Memo:                  map[string]any{"status": "new", "needs": t.Needs}, // for lists
	}
	for lost := true; lost; {
		if err = d.again(ctx, func() error {
			_, err := d.Client.SignalWithStartWorkflow(ctx, t.ID(), session.Wake, nil, options, session.Name, t)
			return err
		}); err != nil {
			return stop, err
		}
		if err = d.again(ctx, func() error { return d.settled(ctx, t.ID(), &stop) }); temporal.IsCanceledError(err) || errors.As(err, new(*temporal.WorkflowExecutionError)) {
			return stop, nil // it was recalled, or ended by a person at the server
		}
		lost = errors.As(err, new(*serviceerror.NotFound))
	}
	return stop, err
}

// settled waits until a session rests or is over. The error is NotFound if the server does not know the session.
func (d *Desk) settled(ctx context.Context, id string, stop *session.Stop) error {
	update, err := d.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: session.Settle, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err == nil {
		err = update.Get(ctx, stop)
	}
	if errors.As(err, new(*serviceerror.NotFound)) { // it is over, or unknown
		err = d.Client.GetWorkflow(ctx, id, "").Get(ctx, stop)
	}
	return err
}

// recall stops a session, and waits until no machine runs it.
func (d *Desk) recall(ctx context.Context, t session.Task) error {
	err := d.again(ctx, func() error { return d.Client.CancelWorkflow(ctx, t.ID(), "") })
	if err == nil {
		err = d.Client.GetWorkflow(ctx, t.ID(), "").Get(ctx, nil)
	}
	if errors.As(err, new(*serviceerror.NotFound)) || temporal.IsCanceledError(err) {
		return nil
	}
	return err
}

// pause is the time between attempts to reach the server.
const pause = time.Second

// again repeats do while the server does not answer, or has lost the namespace that it has had: a person is setting it up again.
func (d *Desk) again(ctx context.Context, do func() error) error {
	for {
		err := do()
		gone := errors.As(err, new(*serviceerror.NamespaceNotFound)) && d.reached.Load()
		if ctx.Err() != nil || !connect.IsAway(err) && !gone {
			if err == nil {
				d.reached.Store(true)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
