package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/holder"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// Reject ends a session that waits for somebody, because a person does not want
// what it made.
func (c *Controller) Reject(ctx context.Context, v session.View, reason string, req worktree.RemoveRequest) (event.Ended, error) {
	return c.dismiss(ctx, v, event.SessionFailed, "rejected: "+reason, req)
}

// Cancel ends a session for good, also while another coven works on it.
func (c *Controller) Cancel(ctx context.Context, v session.View, req worktree.RemoveRequest) (event.Ended, error) {
	if v.Status == session.Running {
		var err error
		if v, err = c.stop(ctx, v); err != nil {
			return event.Ended{}, err
		}
	}
	return c.dismiss(ctx, v, event.SessionCancelled, "cancelled by "+c.Project.Env.User(), req)
}

// dismiss ends a session without landing what it made: that is stored, and the
// task is free. It continues an interrupted dismissal. A landing that was
// cut off is finished or undone first: what has landed cannot be dismissed.
func (c *Controller) dismiss(ctx context.Context, v session.View, end event.Type, why string, req worktree.RemoveRequest) (ended event.Ended, err error) {
	if !dismissible(v) && !c.Project.HalfDismissed(ctx, v) {
		return ended, exit.Failedf("coven why "+shellword.Word(v.Task), "task %s cannot be %s: it is %s", v.Task, verbOf(end), StateOf(v))
	}
	item, err := c.ItemOf(v)
	if err != nil {
		return ended, err
	}
	s, err := c.take(v)
	if err != nil {
		return ended, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	landing, err := c.landing(ctx, s, v)
	if err != nil {
		return ended, err
	}
	if landing.New != "" && end == event.SessionFailed {
		return ended, landedError(v, landing)
	}
	if end == event.SessionFailed && v.Review != nil {
		answer := event.MergeDecision{Patch: v.Review.Patch, By: c.Project.Env.User(), Reason: why}
		if err := s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, answer); err != nil {
			return ended, err
		}
	}
	ended = event.Ended{Summary: v.Summary, Reason: why, Commit: landing.New, Rejected: end == event.SessionFailed}
	if err := s.Append(event.Event{Type: end}, ended); err != nil {
		return ended, err
	}
	// An interrupt from here on would leave the task claimed.
	ctx = context.WithoutCancel(ctx)
	v.Landed, v.Detail = landing, why
	if ended.Rescue, err = c.free(ctx, item, v, req); err != nil {
		return ended, err
	}
	if err := errors.Join(s.Append(event.Event{Type: end}, ended), s.Close()); err != nil {
		return ended, err
	}
	c.RunHooks(ctx, Notification{
		Task: v.Task, Title: v.Info.Query, State: strings.TrimPrefix(string(end), "session."), Detail: why, Session: v.ID,
		Next: "coven run " + shellword.Word(v.Task),
	})
	return ended, nil
}

func verbOf(end event.Type) string {
	if end == event.SessionFailed {
		return "rejected"
	}
	return "cancelled"
}

// dismissible reports whether a session is neither over nor running.
func dismissible(v session.View) bool {
	switch v.Status {
	case session.Waiting, session.Blocked, session.Interrupted:
		return true
	case session.Failed:
		return v.Failing != "" // by its grimoire: its worktree is still there
	}
	return false
}

// landedError refuses what cannot be done to a session whose change is on its
// target.
func landedError(v session.View, l event.Landing) error {
	return exit.Personf("coven resume "+shellword.Word(v.Task), "task %s has landed as %.10s: only steps after the landing can continue", v.Task, l.New)
}

// landing is what a session has put on its target; the zero Landing: nothing. One
// that was cut off is finished or undone first.
func (c *Controller) landing(ctx context.Context, s *session.Session, v session.View) (event.Landing, error) {
	var landing event.Landing
	last, ok := s.Journal.Last(event.LandIntended, event.LandDone)
	if !ok {
		return landing, nil
	}
	if err := last.Decode(&landing); err != nil || last.Type == event.LandDone {
		return landing, err
	}
	landed, err := c.workspace(s, v.Task, v.Info).Recover(ctx, landing)
	if wait := (*runner.Wait)(nil); errors.As(err, &wait) {
		return landing, exit.Personf("coven resume "+shellword.Word(v.Task), "task %s was landing: %s", v.Task, wait.Detail)
	}
	if err != nil || !landed {
		return event.Landing{}, err
	}
	return landing, s.Append(event.Event{Type: event.LandDone, Path: last.Path}, landing)
}

// FinishDismissal frees a task whose dismissal was cut off. What cannot be done
// now is tried again by the next coven.
func (c *Controller) FinishDismissal(ctx context.Context, v session.View) {
	s, err := session.Open(c.Project.Repo.Root, v.ID, c.Project.Env.Now)
	if err != nil {
		return // another coven has it
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	item, err := c.ItemOf(v)
	if err != nil {
		return
	}
	if ref, err := c.free(ctx, item, v, worktree.RemoveRequest{}); err == nil && ref != "" {
		end := event.Type("session." + v.Status)
		_ = s.Append(event.Event{Type: end}, event.Ended{Summary: v.Summary, Reason: v.Detail, Rescue: ref, Rejected: end == event.SessionFailed}) // it is stored
	}
}

// free stores and removes what the session made, and gives the task back, for
// the reason in v.Detail. A session that does not hold the task any more has
// nothing to give. A worktree with ignored files that are too large to store stays.
func (c *Controller) free(ctx context.Context, item project.Item, v session.View, req worktree.RemoveRequest) (ref string, err error) {
	held, err := c.Project.Repo.ClaimOf(ctx, v.Task)
	if errors.Is(err, worktree.ErrNoClaim) || err == nil && held.Session != v.ID {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	req.Note, req.Landed = "session "+v.ID, v.Landed.Tip
	tree, err := c.Project.Repo.Leftover(ctx, v.Task)
	if err == nil {
		ref, err = tree.Remove(ctx, req)
	}
	if big := (*worktree.IgnoredError)(nil); errors.As(err, &big) {
		c.notify(Notice{Text: "the worktree stays: " + big.Error(), Next: "coven worktree remove --drop-ignored " + shellword.Word(v.Task)})
		err = nil
	}
	if err != nil && !errors.Is(err, worktree.ErrNoWorktree) {
		return "", err
	}
	if err := returnTask(ctx, NewTaskTracker(item, holder.ActorIn(v), c.Project.Hidden), v); err != nil {
		return "", err
	}
	return ref, c.Project.Repo.Unclaim(ctx, v.Task, held.Oid)
}

// returnTask tells the tracker that a session is over: a task that has landed is
// done, whatever else was to come; any other is free.
func returnTask(ctx context.Context, tracker TaskTracker, v session.View) error {
	give := func() error { return tracker.Release(ctx, "coven: "+v.Detail) }
	if v.Landed.New != "" {
		give = func() error { return tracker.Close(ctx, v.Summary, v.Landed.New) }
	}
	if err := give(); !errors.Is(err, task.ErrNotFound) { // a task that is gone needs nothing
		return err
	}
	return nil
}
