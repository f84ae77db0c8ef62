package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

var errInterrupted = runner.ErrInterrupted

// desk begins, resumes, approves, rejects and cancels sessions. Several tasks may use
// it at once. It prints nothing: the face that uses it observes.
type desk struct {
	house    *house
	runtime  *runtimeParts
	observer observer
	parking  func() (done func()) // marks work that is parked when it is interrupted; nil: nobody asks
	approve  string               // who approves merge reviews without being asked; empty: a person is asked
	purse    *budget.Budget       // of all tasks of this command; nil: there is no budget
	// ask decides whether plugins may run before a session resumes; nil: as trusted.
	ask func(context.Context, []plugins.Need) error
}

// observer is told what happens while sessions run, in the goroutine of the session. A
// nil func is not called.
type observer struct {
	event  func(event.Event) // an event of a session that runs, those since its last start first
	ended  func(stretch)     // a session has stopped running
	notice func(notice)      // something a person should read
}

// stretch is what a session did between its start or resumption and its next end.
type stretch struct {
	task, session string
	ending        runner.Outcome
}

// notice is something a person should read that is in no journal.
type notice struct {
	task string // empty: of no task
	text string
	next string // the command that helps; empty: none is needed
}

// close ends what runs tasks.
func (d *desk) close() {
	if d.runtime != nil {
		d.runtime.close()
	}
}

func (d *desk) notify(n notice) {
	if d.observer.notice != nil {
		d.observer.notice(n)
	}
}

// park marks work that an interrupt parks, until done is called.
func (d *desk) park() (done func()) {
	if d.parking == nil {
		return func() {}
	}
	return d.parking()
}

// choices are what the command line says about a new session.
type choices struct {
	grimoire, provider, model string
	target                    worktree.Target
	base                      string
}

// begin starts a new session of a task. prior is the session before, which is
// over, or none.
func (d *desk) begin(ctx context.Context, j job, prior session.View, c choices) (runner.Outcome, error) {
	plan, err := d.plan(ctx, j, prior, c)
	if err != nil {
		return runner.Outcome{}, err
	}
	base := c.target.Tip
	if c.base != "" {
		info, err := d.house.repo.Show(ctx, c.base)
		if err != nil {
			return runner.Outcome{}, exit.Usagef("git log --oneline", "--base %s: %w", c.base, err)
		}
		base = info.Oid
	}
	defer d.park()()
	s, err := session.Create(d.house.repo.Root, j.task.ID, j.task.Title, d.house.env.now)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	s.Hide(d.runtime.secrets)
	started := event.Session{
		Project: d.house.repo.Root, Query: j.task.Title, Grimoire: plan.Grimoire.Name, Provider: plan.Provider,
		Model: plan.Model, Target: c.target.Ref, Base: base, Tracker: j.trackerName(), Version: d.house.env.version,
		Attempt: prior.Info.Attempt + 1, Approve: d.approve, Holder: holderName(),
		Actor: actorOf(s.ID),
	}
	if err := d.admit(ctx, j, s, prior, plan, started); err != nil {
		return runner.Outcome{}, err
	}
	return d.work(ctx, s, j, plan, started)
}

// admit claims the task for the new session, clears away what an earlier one
// left, and puts the beginning on record.
func (d *desk) admit(ctx context.Context, j job, s *session.Session, prior session.View, plan *grimoires.Plan, started event.Session) error {
	frozen, err := plan.Marshal()
	if err != nil {
		return errors.Join(err, s.Discard())
	}
	site := d.site(s, j.task.ID, started)
	if _, err := site.Claim(ctx); err != nil {
		return errors.Join(err, s.Discard())
	}
	// Only who holds the claim may clear: nobody else works there now.
	err = d.clear(ctx, j, prior)
	if err == nil {
		err = d.claimTask(ctx, j, actorOf(s.ID))
	}
	if err != nil {
		return errors.Join(err, site.Release(ctx), s.Discard())
	}
	if err := s.Freeze(frozen); err != nil {
		return err
	}
	if err := s.Append(event.Event{Type: event.SessionStarted}, started); err != nil {
		return err
	}
	for _, place := range plan.Raw {
		text := "a command takes a value unquoted: " + place
		if err := s.Append(event.Event{Type: event.Warning}, event.Text{Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// clear puts away what a failed session of the task left: everything in its
// worktree is stored first.
func (d *desk) clear(ctx context.Context, j job, prior session.View) error {
	tree, err := d.house.repo.Leftover(ctx, j.task.ID)
	switch {
	case errors.Is(err, worktree.ErrNoWorktree):
		return nil
	case err != nil:
		return err
	case prior.Status != session.Failed && prior.Status != session.Cancelled:
		return exit.Personf("coven worktree remove "+shellword.Word(j.task.ID), "task %s has a worktree that no session owns: %s", j.task.ID, tree.Path)
	}
	ref, err := tree.Remove(ctx, worktree.RemoveRequest{Note: "session " + prior.ID})
	if err != nil || ref == "" {
		return dropFirst(j.task.ID, err)
	}
	d.notify(notice{task: j.task.ID, text: "the earlier attempt is stored as " + ref})
	return nil
}

// resume goes on with a session that is not over. The step that blocked it runs
// again. more is added to the budgets that hold where it waits.
func (d *desk) resume(ctx context.Context, v session.View, more budget.Amount) (runner.Outcome, error) {
	retry := event.Resumed{Budget: more}
	if more != (budget.Amount{}) {
		retry.At = v.WaitsAt
	}
	if v.Status == session.Blocked || v.Status == session.Failed {
		retry.Retry = v.Failing
	}
	return d.resumeAt(ctx, v, retry)
}

// resumeAt goes on with a session; the results that retry names count no more.
func (d *desk) resumeAt(ctx context.Context, v session.View, retry event.Resumed) (runner.Outcome, error) {
	j, err := d.jobOf(v)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer d.park()()
	s, err := d.take(v)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	plan, err := planOf(s.Dir)
	if err != nil {
		return runner.Outcome{}, err
	}
	if err := d.house.mayRun(needsOf(plan.Grimoire, plan.Provider)); err != nil {
		return runner.Outcome{}, err
	}
	if err := d.mayUse(plan.Grimoire); err != nil {
		return runner.Outcome{}, err
	}
	if err := d.admits(ctx, plan); err != nil {
		return runner.Outcome{}, err
	}
	s.Hide(d.runtime.secrets)
	// Taking the claim anew makes it a new one: whoever wants to take it over from
	// a session that is over finds that it is not.
	if _, err := d.site(s, j.task.ID, v.Info).Claim(ctx); err != nil {
		return runner.Outcome{}, err
	}
	if v.Status == session.Blocked || v.Status == session.Failed {
		if err := d.claimAgain(ctx, j, v); err != nil {
			return runner.Outcome{}, err
		}
	}
	retry.Holder = holderName()
	if err := s.Append(event.Event{Type: event.SessionResumed}, retry); err != nil {
		return runner.Outcome{}, err
	}
	return d.work(ctx, s, j, plan, v.Info)
}

// claimAgain claims the task in its tracker for a session that was blocked.
func (d *desk) claimAgain(ctx context.Context, j job, v session.View) error {
	err := d.claimTask(ctx, j, actorIn(v))
	if status := (*task.StatusError)(nil); errors.As(err, &status) && status.Status == task.StatusClosed {
		return exit.Personf("coven cancel "+shellword.Word(v.Task), "task %s was closed in the tracker meanwhile", v.Task)
	}
	return err
}

// take opens a session that a person saw as v, to write it. What has changed
// meanwhile is not what the person decided about.
func (d *desk) take(v session.View) (*session.Session, error) {
	s, err := session.Open(d.house.repo.Root, v.ID, d.house.env.now)
	if errors.Is(err, session.ErrBusy) {
		return nil, exit.Personf("coven status", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	now, err := s.View()
	if err == nil && !now.Same(v) {
		err = exit.Personf("coven why "+shellword.Word(v.Task), "task %s has changed meanwhile: it is %s", v.Task, stateText(now))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (d *desk) site(s *session.Session, id string, info event.Session) *site {
	branch := strings.TrimPrefix(info.Target, "refs/heads/")
	return &site{
		repo: d.house.repo, session: s, launcher: d.runtime.launcher, environ: d.house.env.environ, secrets: d.runtime.secrets,
		pass: d.house.config.Env.Pass, task: id, base: info.Base,
		target: worktree.Target{Branch: branch, Ref: info.Target, Tip: info.Base},
		holder: holderName(), attempt: info.Attempt,
	}
}

// work runs a session to its next end and shows it.
func (d *desk) work(ctx context.Context, s *session.Session, j job, plan *grimoires.Plan, info event.Session) (runner.Outcome, error) {
	d.warm(ctx, plan.Provider)
	site := d.site(s, j.task.ID, info)
	idle, mail := d.house.config.Timeouts.Idle, newMailbox(s)
	workers := &agents{
		providers: d.runtime.providers, runner: d.runtime.agents, site: site, session: s, provider: plan.Provider, idle: idle,
		limits: d.house.config.Limits, ungated: d.house.config.AllowUngated, waits: &waits{}, mail: mail,
	}
	r := &runner.Runner{
		Task: j.task.ID, Plan: plan, Journal: s, Tracker: j.told(cmp.Or(info.Actor, actorOf(s.ID)), d.house.hidden), Claims: site, Workspace: site,
		Executor: &runner.Executor{
			Session: s.ID, Title: plan.Task.Title, Journal: s, Workspace: site, Landing: site,
			Agents: workers, Reviewers: judges{host: d.runtime.host, site: site, task: plan.Task}, Commands: commands{launcher: d.runtime.launcher, site: site, idle: idle}, Approve: cmp.Or(d.approve, info.Approve),
			Prices: d.house.config.Prices, Budget: d.purse,
		},
	}
	if see := d.observer.event; see != nil {
		for _, e := range s.Journal.Since(event.SessionStarted, event.SessionResumed) {
			see(e)
		}
		s.Journal.Watch(see)
	}
	ctx, drop := site.keep(ctx, renewTime)
	defer drop()
	ctx, stop := mail.open(ctx)
	ending, err := r.Run(ctx)
	stop()
	drop()
	// The session is given up before anybody is told: they may act on it at once.
	if err := errors.Join(err, s.Close()); err != nil {
		err = fmt.Errorf("task %s: %w", j.task.ID, err)
		if errors.Is(err, process.ErrNotFound) {
			err = &exit.Error{Exit: exit.Failed, Err: err, Next: installer(err) + ", then coven resume"}
		}
		return ending, err
	}
	if d.observer.ended != nil {
		d.observer.ended(stretch{task: j.task.ID, session: s.ID, ending: ending})
	}
	d.announce(ctx, j, s, ending)
	return ending, nil
}

// warm lets a provider start while the worktree is made. What is wrong with it is
// said when an agent needs it.
func (d *desk) warm(ctx context.Context, name string) {
	go func() { _ = d.runtime.host.Warm(ctx, plugins.Need{Kind: plugins.KindProvider, Name: name}) }()
}
