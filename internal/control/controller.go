// Package control is the API that every face of coven calls: it begins, resumes,
// retries, approves, rejects and cancels sessions, sends messages to their agents, and
// explains the state of tasks. It prints nothing and asks nobody: a face observes what
// happens and shows it.
//
// There is one file per operation. What the runner is handed are packages of their own:
// workspace, agents, commands and reviewers.
package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/commands"
	"github.com/coven-run/coven/internal/control/reviewers"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/holder"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// ErrInterrupted ends the context of work that a person interrupts.
var ErrInterrupted = runner.ErrInterrupted

// Controller begins, resumes, approves, rejects and cancels sessions. Several tasks may use
// it at once. It prints nothing: the face that uses it observes.
type Controller struct {
	Project  *project.Project
	Runtime  *Runtime
	Observer Observer
	Parking  func() (done func()) // marks work that is parked when it is interrupted; nil: nobody asks
	Approver string               // who approves merge reviews without being asked; empty: a person is asked
	Budget   *budget.Budget       // of all tasks of this command; nil: there is no budget
	// ask decides whether plugins may run before a session resumes; nil: as trusted.
	Ask func(context.Context, []plugins.Need) error
}

// Observer is told what happens while sessions run, in the goroutine of the session. A
// nil func is not called.
type Observer struct {
	Event  func(event.Event) // an event of a session that runs, those since its last start first
	Ended  func(Stretch)     // a session has stopped running
	Notice func(Notice)      // something a person should read
}

// Stretch is what a session did between its start or resumption and its next end.
type Stretch struct {
	Task, Session string
	Outcome       runner.Outcome
}

// Notice is something a person should read that is in no journal.
type Notice struct {
	Task string // empty: of no task
	Text string
	Next string // the command that helps; empty: none is needed
}

// Close ends what runs tasks.
func (c *Controller) Close() {
	if c.Runtime != nil {
		c.Runtime.close()
	}
}

func (c *Controller) notify(n Notice) {
	if c.Observer.Notice != nil {
		c.Observer.Notice(n)
	}
}

// park marks work that an interrupt parks, until done is called.
func (c *Controller) park() (done func()) {
	if c.Parking == nil {
		return func() {}
	}
	return c.Parking()
}

// Options are what the command line says about a new session.
type Options struct {
	Grimoire, Provider, Model string
	Target                    worktree.Target
	Base                      string
}

// Begin starts a new session of a task. prior is the previous session, if any.
func (c *Controller) Begin(ctx context.Context, item project.Item, prior session.View, o Options) (runner.Outcome, error) {
	plan, err := c.plan(ctx, item, prior, o)
	if err != nil {
		return runner.Outcome{}, err
	}
	base := o.Target.Tip
	if o.Base != "" {
		info, err := c.Project.Repo.Show(ctx, o.Base)
		if err != nil {
			return runner.Outcome{}, exit.Usagef("git log --oneline", "--base %s: %w", o.Base, err)
		}
		base = info.Oid
	}
	defer c.park()()
	s, err := session.Create(c.Project.Repo.Root, item.Task.ID, item.Task.Title, c.Project.Env.Now)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	s.Hide(c.Runtime.secrets)
	started := event.Session{
		Project: c.Project.Repo.Root, Query: item.Task.Title, Grimoire: plan.Grimoire.Name, Provider: plan.Provider,
		Model: plan.Model, Target: o.Target.Ref, Base: base, Tracker: item.TrackerName(), Version: c.Project.Env.Version,
		Attempt: prior.Info.Attempt + 1, Approve: c.Approver, Holder: holder.Name(),
		Actor: holder.ActorOf(s.ID),
	}
	if err := c.admit(ctx, item, s, prior, plan, started); err != nil {
		return runner.Outcome{}, err
	}
	return c.work(ctx, s, item, plan, started)
}

// admit claims the task for the new session, removes what an earlier one left, and
// records the start.
func (c *Controller) admit(ctx context.Context, item project.Item, s *session.Session, prior session.View, plan *grimoires.Plan, started event.Session) error {
	frozen, err := plan.Marshal()
	if err != nil {
		return errors.Join(err, s.Discard())
	}
	ws := c.workspace(s, item.Task.ID, started)
	if _, err := ws.Claim(ctx); err != nil {
		return errors.Join(err, s.Discard())
	}
	// The claim excludes other writers: now the leftovers can be removed.
	err = c.clear(ctx, item, prior)
	if err == nil {
		err = c.claimTask(ctx, item, holder.ActorOf(s.ID))
	}
	if err != nil {
		return errors.Join(err, ws.Release(ctx), s.Discard())
	}
	if err := s.Freeze(frozen); err != nil {
		return err
	}
	if err := s.Append(event.Event{Type: event.SessionStarted}, started); err != nil {
		return err
	}
	for _, place := range plan.Raw {
		text := "a command contains an unquoted value: " + place
		if err := s.Append(event.Event{Type: event.Warning}, event.Text{Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what a failed session of the task left. The content of its worktree is
// stored first.
func (c *Controller) clear(ctx context.Context, item project.Item, prior session.View) error {
	tree, err := c.Project.Repo.Leftover(ctx, item.Task.ID)
	switch {
	case errors.Is(err, worktree.ErrNoWorktree):
		return nil
	case err != nil:
		return err
	case prior.Status != session.Failed && prior.Status != session.Cancelled:
		return exit.Personf("coven worktree remove "+shellword.Word(item.Task.ID), "task %s has a worktree that no session owns: %s", item.Task.ID, tree.Path)
	}
	ref, err := tree.Remove(ctx, worktree.RemoveRequest{Note: "session " + prior.ID})
	if err != nil || ref == "" {
		return project.DropIgnoredFirst(item.Task.ID, err)
	}
	c.notify(Notice{Task: item.Task.ID, Text: "the earlier attempt is stored as " + ref})
	return nil
}

// Resume continues a session. A step that blocked it runs again. more is added to the
// budgets in effect where it waits.
func (c *Controller) Resume(ctx context.Context, v session.View, more budget.Amount) (runner.Outcome, error) {
	retry := event.Resumed{Budget: more}
	if more != (budget.Amount{}) {
		retry.At = v.WaitsAt
	}
	if v.Status == session.Blocked || v.Status == session.Failed {
		retry.Retry = v.Failing
	}
	return c.resumeAt(ctx, v, retry)
}

// resumeAt continues a session. The recorded results that retry names are discarded.
func (c *Controller) resumeAt(ctx context.Context, v session.View, retry event.Resumed) (runner.Outcome, error) {
	item, err := c.ItemOf(v)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer c.park()()
	s, err := c.take(v)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	plan, err := project.PlanOf(s.Dir)
	if err != nil {
		return runner.Outcome{}, err
	}
	if err := c.Project.CheckPlugins(project.NeedsOf(plan.Grimoire, plan.Provider)); err != nil {
		return runner.Outcome{}, err
	}
	if err := c.mayUse(plan.Grimoire); err != nil {
		return runner.Outcome{}, err
	}
	if err := c.admits(ctx, plan); err != nil {
		return runner.Outcome{}, err
	}
	s.Hide(c.Runtime.secrets)
	// A new claim stops others from taking over a claim that they believe is over.
	if _, err := c.workspace(s, item.Task.ID, v.Info).Claim(ctx); err != nil {
		return runner.Outcome{}, err
	}
	if v.Status == session.Blocked || v.Status == session.Failed {
		if err := c.reclaim(ctx, item, v); err != nil {
			return runner.Outcome{}, err
		}
	}
	retry.Holder = holder.Name()
	if err := s.Append(event.Event{Type: event.SessionResumed}, retry); err != nil {
		return runner.Outcome{}, err
	}
	return c.work(ctx, s, item, plan, v.Info)
}

// reclaim claims the task in its tracker for a session that was blocked.
func (c *Controller) reclaim(ctx context.Context, item project.Item, v session.View) error {
	err := c.claimTask(ctx, item, holder.ActorIn(v))
	if status := (*task.StatusError)(nil); errors.As(err, &status) && status.Status == task.StatusClosed {
		return exit.Personf("coven cancel "+shellword.Word(v.Task), "task %s was closed in the tracker meanwhile", v.Task)
	}
	return err
}

// take opens a session for writing. It fails if the session is no longer as v shows it:
// the person decided about v.
func (c *Controller) take(v session.View) (*session.Session, error) {
	s, err := session.Open(c.Project.Repo.Root, v.ID, c.Project.Env.Now)
	if errors.Is(err, session.ErrBusy) {
		return nil, exit.Personf("coven status", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	now, err := s.View()
	if err == nil && !now.Same(v) {
		err = exit.Personf("coven why "+shellword.Word(v.Task), "task %s has changed meanwhile: it is %s", v.Task, StateOf(now))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (c *Controller) workspace(s *session.Session, id string, info event.Session) *workspace.Workspace {
	branch := strings.TrimPrefix(info.Target, "refs/heads/")
	return &workspace.Workspace{
		Repo: c.Project.Repo, Session: s, Launcher: c.Runtime.launcher, Environ: c.Project.Env.Environ, Secrets: c.Runtime.secrets,
		Pass: c.Project.Config.Env.Pass, Task: id, Base: info.Base,
		Target: worktree.Target{Branch: branch, Ref: info.Target, Tip: info.Base},
		Holder: holder.Name(), Attempt: info.Attempt,
	}
}

// work runs a session until it stops.
func (c *Controller) work(ctx context.Context, s *session.Session, item project.Item, plan *grimoires.Plan, info event.Session) (runner.Outcome, error) {
	c.warm(ctx, plan.Provider)
	ws := c.workspace(s, item.Task.ID, info)
	idle, mail := c.Project.Config.Timeouts.Idle, agents.NewInbox(s)
	workers := &agents.Agents{
		Providers: c.Runtime.providers, Runner: c.Runtime.agents, Workspace: ws, Session: s, Provider: plan.Provider, Idle: idle,
		Limits: c.Project.Config.Limits, Ungated: c.Project.Config.AllowUngated, LimitWait: &agents.LimitWait{}, Inbox: mail,
	}
	r := &runner.Runner{
		Task: item.Task.ID, Plan: plan, Journal: s, Tracker: NewTaskTracker(item, cmp.Or(info.Actor, holder.ActorOf(s.ID)), c.Project.Hidden), Claims: ws, Workspace: ws,
		Executor: &runner.Executor{
			Session: s.ID, Title: plan.Task.Title, Journal: s, Workspace: ws, Landing: ws,
			Agents: workers, Reviewers: reviewers.Reviewers{Host: c.Runtime.host, Workspace: ws, Task: plan.Task}, Commands: commands.Commands{Launcher: c.Runtime.launcher, Workspace: ws, Idle: idle}, Approve: cmp.Or(c.Approver, info.Approve),
			Prices: c.Project.Config.Prices, Budget: c.Budget,
		},
	}
	if see := c.Observer.Event; see != nil {
		for _, e := range s.Journal.Since(event.SessionStarted, event.SessionResumed) {
			see(e)
		}
		s.Journal.Watch(see)
	}
	ctx, drop := ws.Keep(ctx, workspace.RenewTime)
	defer drop()
	ctx, stop := mail.Open(ctx)
	outcome, err := r.Run(ctx)
	stop()
	drop()
	// The session is given up before anybody is told: they may act on it at once.
	if err := errors.Join(err, s.Close()); err != nil {
		err = fmt.Errorf("task %s: %w", item.Task.ID, err)
		if errors.Is(err, process.ErrNotFound) {
			err = &exit.Error{Exit: exit.Failed, Err: err, Next: builtin.Installer(err) + ", then coven resume"}
		}
		return outcome, err
	}
	if c.Observer.Ended != nil {
		c.Observer.Ended(Stretch{Task: item.Task.ID, Session: s.ID, Outcome: outcome})
	}
	c.notifyEnded(ctx, item, s, outcome)
	return outcome, nil
}

// warm starts a provider while the worktree is created. Its errors are reported when an
// agent needs it.
func (c *Controller) warm(ctx context.Context, name string) {
	go func() { _ = c.Runtime.host.Warm(ctx, plugins.Need{Kind: plugins.KindProvider, Name: name}) }()
}
