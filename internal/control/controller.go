// Package control is the API that the user interfaces of coven call. It runs tasks, resumes, retries,
// approves, rejects and cancels their sessions, sends messages to their agents, and explains the state of
// tasks. It prints nothing and asks nothing: its callers observe events and show them.
//
// Each operation takes the ID of a task or a request, and has its own file. Refusal decides which
// operations are possible in which state of a session. An operation that is not possible does nothing and
// returns one of the error types of refusal.go, which have an exit code and the next command.
//
// The adapters for the runner are in the packages workspace, agents, commands and reviewers.
package control

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/control/pulls"
	"github.com/coven-run/coven/internal/control/reviewers"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/pool"
)

// ErrInterrupted is the cause of a context that a person canceled.
var ErrInterrupted = runner.ErrInterrupted

// Controller runs tasks and acts on their sessions. Several goroutines may use it at once.
type Controller struct {
	Project  *project.Project
	Runtime  *Runtime
	Observer Observer
	Parking  func() (done func()) // optional; marks work that is saved after an interrupt, until done is called
	Approver string               // recorded as the approver of each merge; empty to ask a person
	Budget   *budget.Budget       // of all tasks together; nil means no limit
	Fleet    *fleet.Fleet         // the workers of other machines, which run the sessions that a remote keeps; nil to run them here
	Worker   *fleet.Worker        // that started this process: the tracker is left to the machine that handed the session over; nil if none did
	// Ask returns an error if plugins may not run before a session is resumed. It may ask the user to trust
	// them. If it is nil, only trusted plugins run.
	Ask func(context.Context, []plugins.Need) error
	// Unsandboxed reports whether the user accepts for this repository that there is no sandbox. It may ask
	// the user. If it is nil, the answer is no.
	Unsandboxed func(ctx context.Context, gap string) (bool, error)

	worked   atomic.Bool     // a session has run
	stopTurn chan struct{}   // a value stops the turn of a chat; nil if this Controller runs no chat
	begun    sync.Map        // IDs of the ad-hoc tasks whose sessions this Controller began
	told     sync.Map        // texts of notifyOnce
	outage   handover.Outage // of remotes that keep sessions
	landings sync.Map        // see handover.Keeper
}

// Observer receives the events of running sessions, in the goroutine of the session. Nil functions are not
// called.
type Observer struct {
	Began  func(task, title string) // a session begins or continues
	Event  func(event.Event)        // an event of a running session, beginning with those since its last start
	Spawns []event.Observer         // observers of subagents; each runs in its own goroutine, and its errors become notices
	Ended  func(Outcome)            // a session has stopped running
	Notice func(Notice)             // a message to a person
}

// Notice is a message to a person that is not in a journal.
type Notice struct {
	Task string // optional
	Text string
	Next string // the command that helps; optional
}

// Settle waits until the pool of worktrees has been tidied.
func (c *Controller) Settle() {
	if c.Project.Repo != nil {
		pool.Wait(c.Project.Repo)
	}
}

// Close stops the plugins and releases the resources of running tasks.
func (c *Controller) Close() {
	c.Settle()
	c.Fleet.Close()
	if c.Runtime != nil {
		c.Runtime.close()
	}
	c.CollectLater()
}

// CollectLater starts another process to collect the repository's garbage, if sessions have run.
func (c *Controller) CollectLater() {
	if c.worked.Load() {
		c.Project.CollectLater()
	}
}

// notifyOnce notifies of something that concerns several tasks.
func (c *Controller) notifyOnce(n Notice) {
	if _, told := c.told.LoadOrStore(n.Text, true); !told {
		c.notify(n)
	}
}

func (c *Controller) notify(n Notice) {
	if c.Observer.Notice != nil {
		c.Observer.Notice(n)
	}
}

// park marks work that is saved after an interrupt, until done is called.
func (c *Controller) park() (done func()) {
	if c.Parking == nil {
		return func() {}
	}
	return c.Parking()
}

// openForWriting opens a session for writing. It returns a *ChangedError if the session is no longer in the state of
// v, which the person decided about.
func (c *Controller) openForWriting(v session.View) (*session.Session, error) {
	s, err := session.Open(c.Project.Repo.Root, v.ID, c.Project.Env.Now)
	if errors.Is(err, session.ErrBusy) {
		return nil, Busy(v, "coven status")
	}
	if err != nil {
		return nil, err
	}
	s.BackUp(c.Project.Backups())
	now, err := s.View()
	if err == nil && !now.Same(v) {
		err = &ChangedError{Task: v.Task, State: StateOf(now)}
	}
	if err != nil {
		s.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return s, nil
}

func (c *Controller) workspace(s *session.Session, id string, info event.Session) *workspace.Workspace {
	return &workspace.Workspace{
		Repo: c.Project.Repo, Session: s, Launcher: c.Runtime.launcher, Sandbox: c.Runtime.Sandbox, Network: c.Runtime.network, Environ: c.Project.Env.Environ, Secrets: c.Runtime.secrets,
		Pass: c.Project.Config.Env.Pass, Task: id, Slug: session.Slug(info.Query), Base: info.Base, Forked: info.Forked, Upstream: info.Upstream,
		Target: worktree.Target{Branch: event.BranchName(info.Target), Ref: info.Target, Tip: info.Base},
		Holder: holder.Name(), Attempt: info.Attempt, NoSync: !c.Project.Config.Landing.Fsync, Allow: c.Project.Config.Landing.Allow, Link: c.Project.Config.Worktree.Link,
		Keeper: c.keeper(s, id, info), Turns: c.turns(),
	}
}

// messageTexts returns the subject of the commits of a task, and sets their trailers.
func (c *Controller) messageTexts(ws *workspace.Workspace, t grimoires.Task) (subject string, err error) {
	landing := c.Project.Config.Landing
	if ws.Trailers, err = project.TrailersOf(landing, t); err != nil {
		return "", err
	}
	ws.Signoff = landing.Signoff
	return project.SubjectOf(landing, t)
}

// work runs a session until it stops.
func (c *Controller) work(ctx context.Context, s *session.Session, item project.Item, plan *grimoires.Plan, info event.Session) (Outcome, error) {
	c.worked.Store(true)
	if elsewhere, err := c.forFleet(ctx, s, item.Task.ID, info); elsewhere || err != nil {
		return c.send(ctx, s, item, plan, info, err)
	}
	c.warm(ctx, info.Provider)
	ws := c.workspace(s, item.Task.ID, info)
	subject, err := c.messageTexts(ws, plan.Task)
	if err != nil {
		return Outcome{}, errors.Join(err, s.Close())
	}
	ws.Teardown = workspace.Teardown{Commands: plan.Worktree.Teardown, Timeout: plan.Worktree.TeardownTimeout}
	approvals, err := launch.NewApprovals(s)
	if err != nil {
		return Outcome{}, errors.Join(err, s.Close())
	}
	idle, mail := c.Project.Config.Timeouts.Idle, launch.NewInbox(s, approvals)
	workers := &launch.Launcher{
		Providers: c.Runtime.providers, Runner: c.Runtime.agents, Workspace: ws, Session: s, Plan: plan, Provider: info.Provider, Model: info.Model, Idle: idle,
		Getenv: c.Project.Env.Getenv, Version: c.Project.Env.Version, Limits: c.Project.Config.Limits, Ungated: c.allowsUngated(), LimitWait: &launch.LimitWait{}, Logins: c.Runtime.logins, Others: accounts.Others{Worker: c.Worker, Logins: c.Runtime.logins}, Inbox: mail, Prices: c.Project.Config.Prices, Today: c.Project.Ledger.Today,
		Search:    launch.Search{Files: c.Project.SearchIn, Sessions: c.Project.SearchSessions},
		Approvals: approvals, Spawns: &launch.Spawns{Queue: spawn.Queue{MaxConcurrent: c.Project.Config.Queue.MaxConcurrent, Accounts: c.Project.Config.Queue.ProviderLimits}},
	}
	if err := launch.Settle(s); err != nil {
		return Outcome{}, errors.Join(err, s.Close())
	}
	journal := runner.NewJournal(s)
	r := &runner.Runner{
		Task: item.Task.ID, Plan: plan, Journal: journal, Remote: ws.Remote(), Tracker: c.tracker(s, item, cmp.Or(info.Actor, holder.ActorOf(s.ID))), Claims: ws, Workspace: ws,
		Executor: &runner.Executor{
			Task: item.Task.ID, Session: s.ID, Title: subject, Journal: journal, Workspace: ws, Tripwire: ws, Landing: ws, Pulls: &pulls.Session{Forge: c.forge(), Task: item.Task.ID, Dir: s.Dir, StackedOn: info.StackedOn, Finder: c.Project.Finder},
			Agents: workers, Reviewers: reviewers.Reviewers{Host: c.Runtime.host, Workspace: ws, Task: plan.Task}, Commands: workspace.Commands{Workspace: ws, Idle: idle, Locks: c.Project.Env.CheckLocks()}, Approve: cmp.Or(c.Approver, info.Approve),
			Prices: c.Project.Config.Prices, Budget: c.Budget, Batch: c.batch(info), StopTurn: c.stopTurn,
		},
	}
	if c.Observer.Began != nil && info.Tracker != project.NoTracker { // the ID of other tasks is their title
		c.Observer.Began(item.Task.ID, info.Query)
	}
	if see := c.Observer.Event; see != nil {
		for _, e := range s.Journal.Since(event.SessionStarted, event.SessionResumed) {
			see(e)
		}
		s.Journal.Watch(see)
	}
	stopObservers := c.observe(s, item.Task.ID)
	var notifying sync.WaitGroup
	defer notifying.Wait()
	s.Journal.Watch(func(e event.Event) {
		if e.Type == event.PermissionRequested {
			notifying.Go(func() { c.notifyAsked(ctx, item, s.ID, event.As[event.Approval](e)) })
		}
	})
	ctx, drop := ws.Keep(ctx, workspace.RenewTime)
	defer drop()
	ctx, stop := mail.Open(ctx)
	ended, err := r.Run(ctx)
	stop()
	stopObservers()
	ws.Close()
	drop()
	outcome := outcomeOf(item.Task.ID, s.ID, ended)
	// Close the session first: the observer may reopen it.
	if err := errors.Join(err, s.Close()); err != nil {
		if login := (*accounts.LoginError)(nil); errors.As(err, &login) {
			c.Runtime.logins.Refuse(login)
		}
		return outcome, accounts.Advised(item.Task.ID, err)
	}
	c.ended(ctx, item, info, outcome)
	return outcome, nil
}

// ended reports that a session has stopped running.
func (c *Controller) ended(ctx context.Context, item project.Item, info event.Session, outcome Outcome) {
	if c.Observer.Ended != nil {
		c.Observer.Ended(outcome)
	}
	if !outcome.WaitsInChat(info) {
		c.notifyEnded(ctx, item, outcome)
	}
}

// observe notifies the observers of a session's subagents until stop is called.
func (c *Controller) observe(s *session.Session, task string) (stop func()) {
	var stops []func()
	for _, o := range c.Observer.Spawns {
		stops = append(stops, s.Journal.Observe(o, func(err error) {
			c.notify(Notice{Task: task, Text: "warning: an observer of subagents failed: " + err.Error()})
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Models returns the models of a model plugin.
func (c *Controller) Models(ctx context.Context, plugin string) ([]model.Info, error) {
	return c.Runtime.providers.List(ctx, plugin)
}

// warm starts a provider and reads the list of allowed hosts while the worktree is created. Errors are
// reported when an agent needs them.
func (c *Controller) warm(ctx context.Context, name string) {
	go c.Runtime.network.Warm(ctx)
	go func() { _ = c.Runtime.host.Warm(ctx, plugins.NeedOf(name)) }()
}
