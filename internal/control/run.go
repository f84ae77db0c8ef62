package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/control/pulls"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// Options configures a new session. A session that is resumed keeps its options.
type Options struct {
	Grimoire string // empty to choose by label, matchers or configuration
	Provider string // empty for the configured one
	Model    string // empty for the configured one
	Onto     string // branch to land on; empty for the current branch
	Base     string // commit to start from; empty for the tip of Onto

	Remote string                     // keeps the session; empty to keep it on this machine only
	Pull   bool                       // land with a pull request, whatever the grimoire says
	Agent  string                     // agent of a chat; empty for the configured one
	Given  map[string]grimoires.Given // results of steps that do not run, by their names

	chat  *grimoires.Chat         // set if the session is a chat
	fork  *conversation.Fork      // set if the session is forked from another
	spawn *grimoires.SpawnRequest // set if a person starts a subagent directly
}

// Run runs a task. It resumes the task's session if that can continue, and starts a new one otherwise.
func (c *Controller) Run(ctx context.Context, item project.Item, o Options) (Outcome, error) {
	if _, own := c.begun.Load(item.Task.ID); item.Prompt != "" && !own {
		target, err := c.Project.Repo.Target(ctx, o.Onto)
		if err != nil {
			return Outcome{}, err
		}
		return c.beginNew(ctx, item, target, o)
	}
	item.Prompt = ""
	prior, err := c.Project.Finder.OfTask(item.Task.ID)
	if err != nil && !errors.Is(err, session.ErrNone) {
		return Outcome{}, err
	}
	if err == nil {
		if err := Refusal(OpRun, prior); err != nil && (c.Fleet == nil || !prior.Elsewhere()) {
			return Outcome{}, err
		}
		if prior.Live() {
			return c.goOn(ctx, prior)
		}
	}
	target, err := c.Project.Repo.Target(ctx, o.Onto) // an earlier task may have moved it
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := c.begin(ctx, item, prior, target, o)
	if v, moved := pulls.Moved(c.Project.Finder, item.Task.ID); moved && err == nil && outcome.Reason == event.WaitMerge {
		return c.resume(ctx, v, budget.Amount{}, Switch{})
	}
	return outcome, err
}

// beginNew starts the session of a new ad-hoc task. If another coven with the same prompt has claimed the
// ID, the task gets a new one.
func (c *Controller) beginNew(ctx context.Context, item project.Item, target worktree.Target, o Options) (Outcome, error) {
	for {
		outcome, err := c.begin(ctx, item, session.View{}, target, o)
		if !errors.As(err, new(*takenError)) {
			c.begun.Store(item.Task.ID, true)
			return outcome, err
		}
		if item, err = c.Project.AdHoc(ctx, item.Prompt); err != nil {
			return Outcome{}, err
		}
	}
}

// takenError means that another coven claimed a new ad-hoc task. Nothing has started.
type takenError struct{ error }

func (e *takenError) Unwrap() error { return e.error }

// IsTaken reports whether a task did not run because another coven has it, or because it is no longer
// ready.
func IsTaken(err error) bool {
	return errors.Is(err, claim.ErrClaimed) || errors.Is(err, task.ErrClaimed) || errors.Is(err, task.ErrNotClaimable) ||
		errors.Is(err, session.ErrBusy) || errors.As(err, new(*task.BlockedError))
}
