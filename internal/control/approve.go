package control

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// ApproveRequest is a person's approval of the change of a task.
type ApproveRequest struct {
	Task string
	// Seen is the session that the person saw. The request is refused if the session has changed since. If
	// Seen is zero, the request is about the newest session of the task.
	Seen session.View
	// Patch points to the ID of the patch that the person reviewed; an empty change has an empty ID. The
	// request is refused if the worktree has changed since. If Patch is nil, the approval is for the patch
	// that the session asked about.
	Patch *string
	// Message replaces the message of the commit that lands. With it, a change can also be approved whose landing is blocked,
	// such as by a hook that refused the message.
	Message string
	// AcceptFindings accepts the open error findings of the change.
	AcceptFindings bool
}

// Approve records a person's approval of a change and of its open error findings, and
// resumes the session. If the worktree has changed since the session asked, it asks again.
func (c *Controller) Approve(ctx context.Context, r ApproveRequest) (Outcome, error) {
	v, err := c.sessionOf(ctx, r.Task, r.Seen)
	if err == nil && (r.Message == "" || v.Status != session.Blocked || failedAt(v).Kind != "merge") {
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
	if err == nil {
		err = c.checkSandbox(ctx, resumeUnsandboxed)
	}
	if err != nil {
		return Outcome{}, err // nothing is recorded
	}
	decision := event.MergeDecision{Message: r.Message, Approved: true, By: c.Project.Env.User(), Accepted: v.Open}
	if decision.Patch, decision.Tree, err = c.approved(ctx, v, r.Patch); err != nil {
		return Outcome{}, err
	}
	return c.answer(ctx, v, decision)
}

// approved returns the patch that an approval is about, and its tree if the session has asked about it.
func (c *Controller) approved(ctx context.Context, v session.View, reviewed *string) (patch, tree string, err error) {
	switch {
	case v.WaitsForHost():
		return "", v.Pull.Tree, nil
	case v.Review != nil && (reviewed == nil || *reviewed == v.Review.Patch):
		return v.Review.Patch, v.Review.Tree, nil
	case reviewed != nil:
		return *reviewed, "", nil
	}
	diff, err := c.change(ctx, v) // of a change that landed unasked until it was blocked
	return diff.PatchID, "", err
}

// Approvals lists the changes that coven approve works on.
type Approvals struct {
	Requests []ApproveRequest // in the order of the named tasks, or oldest first
	Skipped  []session.View   // changes with open error findings that were not accepted
	Damaged  []session.View   // unreadable sessions
}

// ToApprove returns the changes to approve: those of the named tasks, or without names all that wait for a
// review. If accept is set, their open error findings are accepted.
func (c *Controller) ToApprove(ctx context.Context, names []string, accept bool) (Approvals, error) {
	if len(names) == 0 {
		return c.allToApprove(accept)
	}
	var found Approvals
	seen := map[string]bool{}
	for _, name := range names {
		v, err := c.Project.Find(ctx, name)
		if err != nil {
			return Approvals{}, err
		}
		if !seen[v.Task] {
			found.Requests = append(found.Requests, ApproveRequest{Task: v.Task, AcceptFindings: accept})
		}
		seen[v.Task] = true
	}
	return found, nil
}

// allToApprove returns the changes that wait for a review.
func (c *Controller) allToApprove(accept bool) (Approvals, error) {
	waiting, damaged, err := Reviews(c.Project)
	found := Approvals{Damaged: damaged}
	for _, v := range slices.Backward(waiting) {
		if HasOpenErrors(v) && !accept {
			found.Skipped = append(found.Skipped, v)
			continue
		}
		found.Requests = append(found.Requests, ApproveRequest{Task: v.Task, Seen: v, AcceptFindings: accept})
	}
	return found, err
}

// checkPatch refuses an approval of a patch that the worktree no longer has.
func (c *Controller) checkPatch(ctx context.Context, v session.View, patch *string) error {
	if patch == nil {
		return nil
	}
	diff, err := c.change(ctx, v)
	if err == nil && diff.PatchID != *patch {
		return &ChangedError{Task: v.Task}
	}
	return err
}

// answer records a person's answer to the question of v, or at the step that blocked it, and resumes the session. The session stays
// locked in between, so that no other process can answer or resume it.
func (c *Controller) answer(ctx context.Context, v session.View, decision event.MergeDecision) (Outcome, error) {
	defer c.park()()
	s, err := c.openForWriting(v)
	if err != nil {
		return Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	again := event.Resumed{}
	path := v.Failing
	switch {
	case v.Status == session.Blocked:
		again.Retry = v.Failing
	case v.WaitsForHost():
		path = v.WaitsAt
	default:
		path = v.Review.Path
	}
	if err := s.Append(event.Event{Type: event.ReviewAnswered, Path: path}, decision); err != nil {
		return Outcome{}, err
	}
	if v, err = s.View(); err != nil {
		return Outcome{}, err
	}
	return c.resumeTaken(ctx, s, v, again)
}
