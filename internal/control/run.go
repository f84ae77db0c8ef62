package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// Options choose how a new session runs. A session that is resumed keeps its own.
type Options struct {
	Grimoire string // empty: chosen by label, matchers or configuration
	Provider string // empty: as configured
	Model    string // empty: as configured
	Onto     string // branch to land on; empty: the one that is checked out
	Base     string // commit to start from; empty: the tip of Onto

	Agent string // with which a chat is; empty: as configured

	chat  *grimoires.Chat         // the session is a chat; nil: it is not
	fork  *conversation.Fork      // what another session gives to it; nil: nothing
	spawn *grimoires.SpawnRequest // the subagent that a person starts directly; nil: none
}

// Run runs a task: it resumes the task's session if that can continue, and starts a
// new session otherwise.
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
		if err := Refusal(OpRun, prior); err != nil {
			return Outcome{}, err
		}
		if prior.Live() {
			return c.resume(ctx, prior, budget.Amount{})
		}
	}
	target, err := c.Project.Repo.Target(ctx, o.Onto) // an earlier task may have moved it
	if err != nil {
		return Outcome{}, err
	}
	return c.begin(ctx, item, prior, target, o)
}

// beginNew starts the session of a new ad-hoc task. If another coven that was given the same prompt
// had the ID first, the task gets another one.
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

// IsTaken reports whether a task did not run because another coven has it, or because it
// is no longer ready.
func IsTaken(err error) bool {
	return errors.Is(err, claim.ErrClaimed) || errors.Is(err, task.ErrClaimed) || errors.Is(err, task.ErrNotClaimable) ||
		errors.Is(err, session.ErrBusy) || errors.As(err, new(*task.BlockedError))
}
