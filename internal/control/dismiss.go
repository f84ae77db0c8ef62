package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/control/hooks"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/rescue"
)

// IgnoredFiles selects the treatment of ignored files that are too large to be stored before their worktree
// is removed. By default the worktree stays.
type IgnoredFiles struct {
	Store bool // store them, regardless of their size
	Drop  bool // delete them
}

// RejectRequest is a person's rejection of the change of a task.
type RejectRequest struct {
	Task    string
	Seen    session.View // as in ApproveRequest
	Reason  string       // shown to the agent of the next attempt
	Ignored IgnoredFiles
}

// Reject stores the change of a session that does not run and reopens its task.
func (c *Controller) Reject(ctx context.Context, r RejectRequest) (Dismissal, error) {
	if strings.TrimSpace(r.Reason) == "" {
		return Dismissal{}, exit.Usagef("", "a rejection needs a reason for the next attempt")
	}
	v, err := c.sessionOf(ctx, r.Task, r.Seen)
	if err == nil {
		err = c.dismissRefusal(ctx, OpReject, v)
	}
	if err == nil {
		v, err = c.recall(ctx, v)
	}
	if err != nil {
		return Dismissal{}, err
	}
	return c.dismiss(ctx, v, event.SessionFailed, "rejected: "+r.Reason, r.Ignored)
}

// CancelRequest asks to end the session of a task for good.
type CancelRequest struct {
	Task    string
	Ignored IgnoredFiles
}

// Cancel stores the change of a session and reopens its task. A session that another
// coven is running is stopped first.
func (c *Controller) Cancel(ctx context.Context, r CancelRequest) (Dismissal, error) {
	v, err := c.Project.Find(ctx, r.Task)
	if err == nil {
		v, err = c.recall(ctx, v)
	}
	if err == nil && v.Away != nil {
		err = handover.Take(ctx, c.Project, v.Info.Remote, v.Task, false)
		over := v.Away.Tip+v.Away.Landed == "" && !errors.As(err, new(*handover.LandedError)) // its record is welcome, but not needed
		if err == nil || over || errors.As(err, new(*handover.EndedError)) {
			v, err = c.Project.Find(ctx, v.Task)
		}
	}
	if err == nil && v.Status == session.Running {
		v, err = handover.Stop(ctx, c.Project.Repo.Root, v, session.Request{Kind: session.KindCancel, By: c.Project.Env.User(), Time: c.Project.Env.Now()})
	}
	if err == nil {
		err = c.dismissRefusal(ctx, OpCancel, v)
	}
	if err != nil {
		return Dismissal{}, err
	}
	end, why := handover.EndOf(v, session.Cancelled, "cancelled by "+c.Project.Env.User())
	return c.dismiss(ctx, v, end, why, r.Ignored)
}

// dismissRefusal returns why a session cannot be rejected or cancelled. A dismissal that
// was interrupted can be repeated.
func (c *Controller) dismissRefusal(ctx context.Context, op Operation, v session.View) error {
	err := Refusal(op, v)
	if err != nil && c.Project.HalfDismissed(ctx, v) {
		return nil
	}
	return err
}

// Dismissal is the result of rejecting or cancelling a session.
type Dismissal struct {
	Task   string
	Rescue string // ref of the stored work; empty if nothing had to be stored
	Commit string // commit that had landed before; may be empty
}

// dismiss ends a session without landing its change: it stores the change and reopens the
// task. It continues a dismissal that was interrupted. An interrupted landing is finished
// or undone first, because a change that has landed cannot be dismissed.
func (c *Controller) dismiss(ctx context.Context, v session.View, end event.Type, why string, ignored IgnoredFiles) (done Dismissal, err error) {
	item, err := c.ItemOf(v)
	if err != nil {
		return done, err
	}
	s, err := c.openForWriting(v)
	if err != nil {
		return done, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	kept := c.keeper(s, v.Task, v.Info)
	if err := kept.Claim(ctx, v); err != nil {
		return done, err
	}
	landing, err := c.landing(ctx, s, v)
	if err != nil {
		return done, err
	}
	if landing.New != "" && end == event.SessionFailed {
		return done, landed(v, landing.New)
	}
	if end == event.SessionFailed {
		if err := c.reject(ctx, s, v, why); err != nil {
			return done, err
		}
	}
	ended := event.Ended{Summary: v.Summary, Reason: why, Commit: landing.New, Rejected: end == event.SessionFailed}
	if end != event.SessionCompleted { // which means that the worktree was released
		if err := s.Append(event.Event{Type: end}, ended); err != nil {
			return done, err
		}
	}
	// An interrupt from here on would leave the task claimed.
	ctx = context.WithoutCancel(ctx)
	v.Landed, v.Detail = landing, why
	if ended.Rescue, err = c.releaseWorktree(ctx, s, item, v, ignored); err != nil {
		return done, err
	}
	if err := errors.Join(s.Append(event.Event{Type: end}, ended), kept.End(ctx), s.Close()); err != nil {
		return done, err
	}
	c.runHooks(ctx, hooks.Notification{
		Task: v.Task, Title: v.Info.Query, State: strings.TrimPrefix(string(end), "session."), Detail: why, Session: v.ID,
		Next: "coven run " + shellword.Word(v.Task),
	})
	return Dismissal{Task: v.Task, Rescue: ended.Rescue, Commit: ended.Commit}, nil
}

// reject stores a rejected change, and answers its review.
func (c *Controller) reject(ctx context.Context, s *session.Session, v session.View, why string) error {
	if diff, err := c.change(ctx, v); err == nil && diff.Patch != "" { // without a worktree there is no change
		if err := s.KeepRejected(c.Project.Hidden(diff.Patch)); err != nil {
			return err
		}
	}
	if v.Review == nil {
		return nil
	}
	answer := event.MergeDecision{Patch: v.Review.Patch, By: c.Project.Env.User(), Reason: why}
	return s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, answer)
}

// landing returns the landing of a session, or the zero Landing if nothing has landed. It finishes or
// undoes an interrupted landing first.
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

// FinishDismissal completes a dismissal that was interrupted. If it fails, the next coven
// tries again.
func (c *Controller) FinishDismissal(ctx context.Context, v session.View) {
	s, err := session.Open(c.Project.Repo.Root, v.ID, c.Project.Env.Now)
	if err != nil {
		return // another coven has opened it
	}
	s.BackUp(c.Project.Backups())
	defer s.Close() //nolint:errcheck // every event is on disk
	item, err := c.ItemOf(v)
	if err != nil {
		return
	}
	if ref, err := c.releaseWorktree(ctx, s, item, v, IgnoredFiles{}); err == nil && ref != "" {
		end := event.Type("session." + v.Status)
		_ = s.Append(event.Event{Type: end}, event.Ended{Summary: v.Summary, Reason: v.Detail, Rescue: ref, Rejected: end == event.SessionFailed}) // the work is stored even if this fails
		_ = c.keeper(s, v.Task, v.Info).End(ctx)                                                                                                   // coven run tries again
	}
}

// releaseWorktree stores and removes the worktree of a session and reopens its task for the reason in
// v.Detail. It does nothing if the session no longer has the claim. A worktree with ignored
// files that are too large to store stays.
func (c *Controller) releaseWorktree(ctx context.Context, s *session.Session, item project.Item, v session.View, ignored IgnoredFiles) (ref string, err error) {
	held, err := claim.Of(ctx, c.Project.Repo, v.Task)
	if errors.Is(err, claim.ErrNoClaim) || err == nil && held.Session != v.ID {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := c.tearDown(ctx, s, v); err != nil {
		return "", err
	}
	tree, err := worktree.Leftover(ctx, c.Project.Repo, v.Task)
	if err == nil {
		ref, err = worktree.Remove(ctx, tree, worktree.RemoveRequest{
			Note: "session " + v.ID, Landed: v.Landed.Tip, KeepBig: ignored.Store, DropIgnored: ignored.Drop,
		})
	}
	switch big := (*rescue.IgnoredError)(nil); {
	case errors.As(err, &big):
		c.notify(Notice{Text: "the worktree stays: " + big.Error(), Next: "coven worktree remove --drop-ignored " + shellword.Word(v.Task)})
	case err == nil || errors.Is(err, worktree.ErrNoWorktree):
		ForgetCaches(c.Project, worktree.SafeName(v.Task))
	default:
		return "", err
	}
	if err := c.tracker(s, item, holder.ActorIn(v)).Return(ctx, v); err != nil {
		return "", err
	}
	return ref, claim.Release(ctx, c.Project.Repo, v.Task, held.Oid)
}
