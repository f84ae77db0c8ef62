package control

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner"
)

// Bring brings the sessions of tasks that a remote keeps to this machine, if another machine has continued them; with takeOver, also if that machine seems to run them.
func (c *Controller) Bring(ctx context.Context, remote string, tasks []string, takeOver bool) error {
	for _, task := range tasks {
		if err := handover.Take(ctx, c.Project, remote, task, takeOver); err != nil {
			return err
		}
	}
	return nil
}

// keeper returns the Keeper of a session, or nil if no remote keeps it.
func (c *Controller) keeper(s *session.Session, task string, info event.Session) *handover.Keeper {
	if info.Remote == "" {
		return nil
	}
	k := &handover.Keeper{
		Repo: c.Project.Repo, Remote: info.Remote, Task: task, Base: info.Base, Target: info.Target, Allow: c.Project.Config.Landing.Allow, Hide: c.Project.Hidden, Session: s, Landings: &c.landings, Sends: c.Fleet != nil,
		Notify: func(text string) { c.notify(Notice{Task: task, Text: "warning: " + oneline.Of(text)}) },
	}
	k.Start()
	return k
}

// turns returns the turns of machines to land, or nil if this process does not work for others.
func (c *Controller) turns() workspace.Turns {
	if c.Worker == nil {
		return nil
	}
	return c.Worker
}

// sessionOf returns the session that a request is about. If a remote keeps it, and another machine has continued it, it is brought here first.
func (c *Controller) sessionOf(ctx context.Context, task string, seen session.View) (session.View, error) {
	v, err := seen, error(nil)
	if seen.ID == "" {
		v, err = c.Project.Find(ctx, task)
	}
	remote := v.Info.Remote
	if errors.As(err, new(*project.NoSessionError)) || errors.Is(err, session.ErrNone) {
		remote = c.Project.Config.Run.Remote
	}
	if remote == "" || err == nil && !v.Unfinished() {
		return v, err
	}
	err = handover.Take(ctx, c.Project, remote, task, false)
	if landed := errors.As(err, new(*handover.LandedError)); !landed && (err != nil || seen.ID != "") {
		return v, err // the session may have changed since it was seen
	}
	v, failed := c.Project.Find(ctx, task)
	return v, cmp.Or(err, failed)
}

// forFleet reports whether workers run a session from now on: there are some, a remote keeps the session, and it has not landed.
func (c *Controller) forFleet(ctx context.Context, s *session.Session, task string, info event.Session) (bool, error) {
	if c.Fleet == nil || info.Remote == "" {
		return false, nil
	}
	if len(s.Journal.Of(event.SessionResumed)) == 0 {
		return true, nil
	}
	commit, err := c.keeper(s, task, info).Landed(ctx, info.Target)
	return commit == "", err
}

// send hands a session to the workers, and returns its outcome when it rests or is over. After an interrupt, the workers go on.
func (c *Controller) send(ctx context.Context, s *session.Session, item project.Item, plan *grimoires.Plan, info event.Session, err error) (Outcome, error) {
	if err == nil {
		err = s.Append(event.Event{Type: event.SessionWaiting}, event.Waiting{Reason: event.WaitWorker, Detail: "the workers on " + c.Fleet.On + " run it", Next: c.Fleet.Resume(item.Task.ID)})
	}
	if err == nil {
		err = c.keeper(s, item.Task.ID, info).Push(ctx)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return Outcome{}, err
	}
	return c.follow(ctx, item, plan, info)
}

// follow returns the outcome of a session that workers run, when it rests or is over. If the server does not know the session, it gets it.
func (c *Controller) follow(ctx context.Context, item project.Item, plan *grimoires.Plan, info event.Session) (Outcome, error) {
	task := item.Task.ID
	status, err := c.Fleet.Run(ctx, task, info.Remote, plan.Task.Labels)
	if err == nil { // no machine runs it any more
		err = handover.TakeBack(ctx, c.Project, info.Remote, task)
	}
	land := (*handover.LandedError)(nil)
	landed, over := errors.As(err, &land), errors.As(err, new(*handover.EndedError))
	if over {
		err = c.endHere(ctx, task, event.Status(status), err)
	}
	if err != nil && !landed && !errors.Is(err, ErrInterrupted) {
		return Outcome{}, err
	}
	v, err := c.Project.Finder.OfTask(task)
	if err == nil && landed {
		c.landings.Store(v.ID, land.Commit)
		done, refused := c.resume(ctx, v, budget.Amount{}, Switch{})
		if !errors.Is(refused, session.ErrBusy) && !errors.As(refused, new(*ChangedError)) {
			return done, refused
		}
		v, err = handover.Idle(ctx, v.Dir) // another coven on this machine waited for it, too
	}
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Task: task, Session: v.ID, Status: v.Status, Reason: v.Reason, Detail: DetailOf(v), Next: NextOf(v), Summary: v.Summary, Commit: v.Commit}
	if !over { // a dismissal has called the hooks
		c.ended(ctx, item, info, outcome)
	} else if c.Observer.Ended != nil {
		c.Observer.Ended(outcome)
	}
	return outcome, nil
}

// goOn continues a session, which another machine may have continued or landed. If the remote does not answer, the session waits until it does.
func (c *Controller) goOn(ctx context.Context, v session.View) (Outcome, error) {
	now, err := v, error(nil)
	if v.Info.Remote != "" {
		now, err = c.sessionOf(ctx, v.Task, session.View{})
	}
	if held := (*handover.HeldError)(nil); c.Fleet != nil && errors.As(err, &held) {
		return c.followHeld(ctx, held.Remote, held.Task)
	}
	switch {
	case errors.Is(err, handover.ErrAway):
		now = v
	case err != nil && !errors.As(err, new(*handover.LandedError)):
		return Outcome{}, err
	}
	return c.resume(ctx, now, budget.Amount{}, Switch{})
}

// endHere ends a session with the status that it has on another machine. Without a status, it returns ended.
func (c *Controller) endHere(ctx context.Context, task string, status event.Status, ended error) error {
	v, err := c.Project.Find(ctx, task)
	end, why := handover.EndOf(v, status, "")
	if err != nil || why == "" {
		return errors.Join(err, ended)
	}
	_, err = c.dismiss(ctx, v, end, why, IgnoredFiles{Store: true})
	return err
}

// followHeld is follow for a session that another machine runs, and that goes on there.
func (c *Controller) followHeld(ctx context.Context, remote, task string) (Outcome, error) {
	v, plan, err := handover.Copy(ctx, c.Project, remote, task)
	if errors.As(err, new(*handover.LandedError)) {
		if v, err = c.Project.Finder.OfTask(task); err == nil {
			return c.resume(ctx, v, budget.Amount{}, Switch{})
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	item, err := c.ItemOf(v)
	if err != nil {
		return Outcome{}, err
	}
	return c.follow(ctx, item, plan, v.Info)
}

// unattended returns the sessions that workers can continue without a person, as far as the remote knows. If the server has lost its state, it gets all of them.
func (c *Controller) unattended(ctx context.Context, today budget.Day) (all []ResumeRequest, err error) {
	if c.Fleet == nil || c.Project.Config.Run.Remote == "" {
		return nil, nil
	}
	views, err := handover.List(ctx, c.Project, c.Project.Config.Run.Remote)
	for _, v := range slices.Backward(views) {
		if v.Status == session.Running || v.Status == session.Interrupted || v.Status == session.Waiting && !WaitsForReview(v) && !WaitsForMessage(v) && !overBudget(v, today) {
			all = append(all, ResumeRequest{Task: v.Task})
		}
	}
	return all, err
}

// recall stops a session that workers run, and brings it here.
func (c *Controller) recall(ctx context.Context, v session.View) (session.View, error) {
	if c.Fleet == nil || v.Info.Remote == "" || !v.Live() || v.Away != nil && !v.Elsewhere() {
		return v, nil
	}
	if err := c.Fleet.Recall(ctx, v.Task, v.Info.Remote); errors.Is(err, ErrInterrupted) {
		return v, err
	} else if err != nil { // a machine that still runs it is excluded by its remote
		c.notify(Notice{Task: v.Task, Text: "warning: " + err.Error(), Next: exit.Next(err)})
	}
	if err := handover.Take(ctx, c.Project, v.Info.Remote, v.Task, true); err != nil && !errors.As(err, new(*handover.EndedError)) {
		return v, err
	}
	return c.Project.Find(ctx, v.Task)
}

// batch returns the sessions whose changes are checked together with the one of a session, or nil. A remote keeps the session of one task only in a push.
func (c *Controller) batch(info event.Session) *runner.Batch {
	if info.Remote != "" {
		return nil
	}
	return c.Runtime.batches.On(info.Target, c.Project.Config.Landing.Batch)
}
