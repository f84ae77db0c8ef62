package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// begin starts a new session of a task. prior is the previous session, if any.
func (c *Controller) begin(ctx context.Context, item project.Item, prior session.View, target worktree.Target, o Options) (Outcome, error) {
	if err := c.Project.CheckLost(ctx, item.Task.ID); err != nil {
		return Outcome{}, err
	}
	plan, err := c.plan(ctx, item, prior, target, o)
	if err != nil {
		return Outcome{}, err
	}
	defer c.park()()
	from, err := c.startPoint(ctx, item, plan, target, o)
	if err != nil {
		return Outcome{}, err
	}
	target, base := from.target, from.base
	plan.Target = target.Ref
	var upstream, problem string
	if c.Project.Config.Worktree.Base == "remote" && o.Base == "" && !target.IsRemote() {
		up, failed := workspace.Base(ctx, c.Project.Repo, target)
		upstream, problem, base = up.Name, failed, cmp.Or(up.Tip, base)
	}
	s, err := session.Create(c.Project.Repo.Root, item.Task.ID, item.Task.Title, c.Project.Env.Now)
	if err != nil {
		return Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	s.Hide(c.Runtime.secrets)
	s.BackUp(c.Project.Backups())
	started := event.Session{
		Project: c.Project.Repo.Root, Query: item.Task.Title, Agent: agents.Primary(plan), Grimoire: plan.Grimoire.Name, Provider: plan.Provider,
		Model: plan.Model, Target: target.Ref, Base: base, Upstream: upstream, Tracker: item.TrackerName(), Version: c.Project.Env.Version,
		Attempt: prior.Info.Attempt + 1, Approve: c.Approver, Holder: holder.Name(),
		Actor: holder.ActorOf(s.ID), Sandbox: string(c.Runtime.Sandbox.Level()), Chat: plan.Chat != nil, Forked: o.fork.Origin(), StackedOn: from.stackedOn, Remote: o.Remote,
		Budget: plan.Grimoire.Budget.Amount,
	}
	if err := c.admit(ctx, item, s, prior, plan, started, o.fork); err != nil {
		return Outcome{}, err
	}
	if problem != "" {
		if err := s.Append(event.Event{Type: event.Warning}, event.Text{Text: problem}); err != nil {
			return Outcome{}, err
		}
	}
	return c.work(ctx, s, item, plan, started)
}

// startPoint is where a session starts.
type startPoint struct {
	target    worktree.Target
	base      string // commit
	stackedOn string // task whose pull request the change is stacked on; optional
}

// startPoint returns where a new session starts. If a remote is to keep it, startPoint waits for that.
func (c *Controller) startPoint(ctx context.Context, item project.Item, plan *grimoires.Plan, target worktree.Target, o Options) (from startPoint, err error) {
	tip := "" // of a session of the task that the remote keeps
	find := func() (err error) {
		switch from.target = target; {
		case plan.Grimoire.LandsByPullRequest():
			if from.target, from.stackedOn, err = c.pullTarget(ctx, item, target); err == nil && o.Remote != "" {
				tip, err = handover.Tip(ctx, c.Project, o.Remote, item.Task.ID)
			}
		case o.Remote != "":
			from.target, tip, err = workspace.RemoteTarget(ctx, c.Project, target.Branch, o.Remote, item.Task.ID)
		}
		if err == nil {
			from.base, err = baseOf(ctx, c.Project, from.target, o.Base)
		}
		if err == nil && o.Remote != "" {
			err = handover.CheckStart(ctx, c.Project, o.Remote, item.Task.ID, tip, from.target, from.base)
		}
		return err
	}
	return from, c.outage.Wait(ctx, o.Remote, func(text string) { c.notify(Notice{Text: "warning: " + text}) }, find)
}

// admit claims the task for the new session, removes the leftovers of an earlier session, and records the
// start together with the messages of a fork. From then on the session exists.
func (c *Controller) admit(ctx context.Context, item project.Item, s *session.Session, prior session.View, plan *grimoires.Plan, started event.Session, fork *conversation.Fork) error {
	frozen, err := plan.Marshal()
	if err != nil {
		return errors.Join(err, s.Discard())
	}
	ws := c.workspace(s, item.Task.ID, started)
	if _, err := ws.Claim(ctx); err != nil {
		if errors.Is(err, claim.ErrClaimed) && item.Prompt != "" {
			err = &takenError{err}
		}
		return errors.Join(err, s.Discard())
	}
	if item.Prompt != "" { // another coven may have claimed the ID and finished
		if _, err := c.Project.Finder.OfTask(item.Task.ID); !errors.Is(err, session.ErrNone) {
			return errors.Join(&takenError{fmt.Errorf("task %s has a session", item.Task.ID)}, ws.Release(ctx), s.Discard())
		}
	}
	// The claim excludes other writers: now the leftovers can be removed.
	err = c.removeLeftover(ctx, item, prior)
	if err == nil {
		err = c.claimTask(ctx, item, holder.ActorOf(s.ID), started.StackedOn)
	}
	if err != nil {
		return errors.Join(err, ws.Release(ctx), s.Discard())
	}
	if err := errors.Join(fork.WriteMessages(s), s.Freeze(frozen)); err != nil { // for example, the disk is full
		return errors.Join(err, ws.Release(ctx), s.Discard())
	}
	if err := s.Append(event.Event{Type: event.SessionStarted}, started); err != nil {
		return err
	}
	created := event.Created{Directory: session.Dir + "/" + s.ID, Agent: started.Agent, Title: started.Query}
	if err := s.Append(event.Event{Type: event.SessionCreated}, created); err != nil {
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

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// removeLeftover stores the contents of a failed session's worktree and removes it.
func (c *Controller) removeLeftover(ctx context.Context, item project.Item, prior session.View) error {
	tree, err := worktree.Leftover(ctx, c.Project.Repo, item.Task.ID)
	switch {
	case errors.Is(err, worktree.ErrNoWorktree):
		ForgetCaches(c.Project, worktree.SafeName(item.Task.ID)) // coven may have been killed before it removed them
		return nil
	case err != nil:
		return err
	case prior.Status != session.Failed && prior.Status != session.Cancelled && !exists(tree.Path):
		return exit.Personf("git branch -m "+shellword.Word(tree.Branch)+" NEW-NAME", "task %s has a branch that no session owns: %s", item.Task.ID, tree.Branch)
	case prior.Status != session.Failed && prior.Status != session.Cancelled:
		return exit.Personf("coven worktree remove "+shellword.Word(item.Task.ID), "task %s has a worktree that no session owns: %s", item.Task.ID, tree.Path)
	}
	if err := c.tearDown(ctx, nil, prior); err != nil {
		return err
	}
	ref, err := worktree.Remove(ctx, tree, worktree.RemoveRequest{Note: "session " + prior.ID})
	if err == nil {
		ForgetCaches(c.Project, tree.Name)
	}
	if err != nil || ref == "" {
		return project.DropIgnoredFirst(item.Task.ID, err)
	}
	c.notify(Notice{Task: item.Task.ID, Text: "the earlier attempt is stored as " + ref})
	return nil
}
