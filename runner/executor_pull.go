package runner

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/pullrequest"
)

// pull runs a merge leaf with the strategy pull-request.
func (x *Executor) pull(ctx context.Context, c engine.Call) (event.Result, error) {
	l := pullrequest.Landing{
		Task: x.Task, Session: x.Session, Path: c.Path, Journal: x.Journal, Append: x.Journal.Append,
		Host: x.Pulls, Work: pullWork{x.Workspace, x, c}, Approver: x.Approve,
	}
	result, err := failure(l.Run(ctx))
	if result.OK {
		result.Summary = c.Merge.Summary
	}
	if wait := (*pullrequest.Wait)(nil); errors.As(err, &wait) {
		return result, &Wait{Reason: wait.Reason, Detail: wait.Detail, Next: wait.Next, Until: wait.Until}
	}
	return result, err
}

// pullWork is the change of a merge leaf that lands with a pull request.
type pullWork struct {
	workspace
	executor *Executor
	call     engine.Call
}

// Prepare implements pullrequest.Work.
func (w pullWork) Prepare(ctx context.Context, last string) (event.Landing, event.Result, error) {
	x, c := w.executor, w.call
	candidate, err := x.integrate(ctx, c)
	switch {
	case err != nil || candidate.Tip == last:
		return candidate, event.Result{}, err
	case candidate.Patch == "":
		return candidate, nothingToLand(c), nil
	}
	if result, err := x.runChecks(ctx, c, candidate); err != nil || result.Error != "" {
		return candidate, result, err
	}
	// The merge on the host is a person's approval. But open errors and other surprises are not published without one.
	unreviewed := *c.Merge
	unreviewed.RequireReview, unreviewed.Reviewed = false, nil
	c.Merge = &unreviewed
	return candidate, event.Result{}, x.approval(ctx, c, candidate)
}

// Revision implements pullrequest.Work.
func (w pullWork) Revision() (event.Result, bool, error) { return w.executor.revision(w.call.Path) }

// Message implements pullrequest.Work.
func (w pullWork) Message() string { return w.executor.landingMessage(w.call) }
