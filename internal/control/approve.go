package control

import (
	"context"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// ApproveRequest is a person's approval of the change of a task.
type ApproveRequest struct {
	Task string
	// Seen is the session as the person saw it: the request is refused if it has changed
	// since. Zero: the newest session of the task, as it is.
	Seen session.View
	// Patch points to the ID of the patch that the person reviewed, which is empty for an
	// empty change: the request is refused if the worktree has changed since. nil: the
	// patch that the session asked about.
	Patch *string
	// AcceptFindings accepts the open error findings of the change.
	AcceptFindings bool
}

// Approve records a person's approval of a change and of its open error findings, and
// resumes the session. If the worktree has changed since the session asked, it asks again.
func (c *Controller) Approve(ctx context.Context, r ApproveRequest) (Outcome, error) {
	v, err := c.subject(r.Task, r.Seen)
	if err == nil {
		err = Refusal(OpApprove, v)
	}
	if err == nil && len(v.Open) > 0 && !r.AcceptFindings {
		err = &OpenFindingsError{Task: v.Task, Findings: v.Open}
	}
	if err == nil {
		err = c.checkPatch(ctx, v, r.Patch)
	}
	if err == nil {
		err = c.checkSession(v)
	}
	if err != nil {
		return Outcome{}, err // nothing is recorded
	}
	patch := v.Review.Patch
	if r.Patch != nil {
		patch = *r.Patch
	}
	answer := event.MergeDecision{Patch: patch, Approved: true, By: c.Project.Env.User(), Accepted: v.Open}
	if err := c.answer(v, answer); err != nil {
		return Outcome{}, err
	}
	v, err = session.Load(v.Dir)
	if err != nil {
		return Outcome{}, err
	}
	return c.resume(ctx, v, budget.Amount{})
}

// subject returns the session that a request is about.
func (c *Controller) subject(task string, seen session.View) (session.View, error) {
	if seen.ID != "" {
		return seen, nil
	}
	return c.Project.Find(task)
}

// checkPatch refuses an approval of a patch that the worktree no longer has.
func (c *Controller) checkPatch(ctx context.Context, v session.View, patch *string) error {
	if patch == nil {
		return nil
	}
	_, diff, err := c.change(ctx, v)
	if err == nil && diff.PatchID != *patch {
		return &ChangedError{Task: v.Task}
	}
	return err
}

// answer records a person's answer to the question that v asked.
func (c *Controller) answer(v session.View, decision event.MergeDecision) error {
	s, err := c.take(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	return s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, decision)
}
