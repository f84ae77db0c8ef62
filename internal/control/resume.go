package control

import (
	"context"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/runner"
)

// Resumable reports whether coven resume without a task resumes a session. A session whose
// own budget is spent needs more of it.
func Resumable(v session.View, more budget.Amount) bool {
	switch {
	case v.Status == session.Interrupted:
		return true
	case v.Status != session.Waiting || v.Reason == event.WaitReview:
		return false
	}
	return !IsBudgetSpent(v) || more != (budget.Amount{})
}

// IsBudgetSpent reports whether a session waits for its own budget, not for that of a
// coven run.
func IsBudgetSpent(v session.View) bool { return v.Reason == event.WaitBudget && v.More != "" }

// ResumeByHand resumes a session that a person named, or explains why it cannot.
func (c *Controller) ResumeByHand(ctx context.Context, v session.View, more budget.Amount) (runner.Outcome, error) {
	task := shellword.Word(v.Task)
	switch {
	case v.Damage != "" && v.Status != session.Running:
		return runner.Outcome{}, exit.Personf(NextOf(v), "session %s is damaged: %s", v.ID, v.Damage)
	case v.Status == session.Waiting && v.Reason == event.WaitReview:
		return runner.Outcome{}, exit.Personf(NextOf(v), "task %s waits for a review: %s", v.Task, DetailOf(v))
	case v.Status == session.Running:
		return runner.Outcome{}, exit.Personf("coven logs -f "+task, "task %s: %w", v.Task, session.ErrBusy)
	case v.Status == session.Completed:
		return runner.Outcome{}, exit.Failedf("coven why "+task, "task %s is completed: there is nothing to resume", v.Task)
	case v.Status == session.Failed, v.Status == session.Cancelled:
		return runner.Outcome{}, exit.Failedf("coven run "+task, "task %s is over (%s): %s", v.Task, v.Status, v.Detail)
	}
	if err := c.admitSession(ctx, v); err != nil {
		return runner.Outcome{}, err
	}
	return c.Resume(ctx, v, more)
}

// admitSession reports whether the plugins of a session may run.
func (c *Controller) admitSession(ctx context.Context, v session.View) (err error) {
	needs, err := project.NeedsOfSession(v.Dir)
	if err != nil {
		return err
	}
	if c.Ask == nil {
		return c.Project.CheckPlugins(needs)
	}
	return c.Ask(ctx, needs)
}
