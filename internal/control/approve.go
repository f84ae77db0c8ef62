package control

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// Approve records a person's approval of a patch that v waits with, and of v's
// open error findings, and resumes the session. Another patch than that is asked
// about again.
func (c *Controller) Approve(ctx context.Context, v session.View, patch string) (runner.Outcome, error) {
	needs, err := project.NeedsOfSession(v.Dir)
	if err == nil {
		err = c.Project.CheckPlugins(needs)
	}
	if err != nil {
		return runner.Outcome{}, err // before anything is on record
	}
	if err := c.answer(v, event.MergeDecision{Patch: patch, Approved: true, By: c.Project.Env.User(), Accepted: v.Open}); err != nil {
		return runner.Outcome{}, err
	}
	v, err = session.Load(v.Dir)
	if err != nil {
		return runner.Outcome{}, err
	}
	return c.Resume(ctx, v, budget.Amount{})
}

// answer records a person's answer to the question that v waits with.
func (c *Controller) answer(v session.View, r event.MergeDecision) error {
	if v.Review == nil {
		return fmt.Errorf("session %s does not wait for an answer", v.ID)
	}
	s, err := c.take(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	return s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, r)
}
