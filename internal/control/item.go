package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// claimTask claims a task in its tracker. It takes over the claim of a session that never
// started or is over, whose coven was killed before it could release the claim.
func (c *Controller) claimTask(ctx context.Context, item project.Item, actor string, despite ...string) error {
	if item.Tracker == nil {
		return nil
	}
	_, err := item.Tracker.Claim(ctx, item.Task.ID, actor, despite...)
	if claimed := (*task.ClaimedError)(nil); errors.As(err, &claimed) && c.Project.Abandoned(claimed.Owner) {
		if _, err := item.Tracker.Release(ctx, item.Task.ID, claimed.Owner, ""); err != nil {
			return err
		}
		_, err = item.Tracker.Claim(ctx, item.Task.ID, actor, despite...)
	}
	return err
}

// ItemOf returns the task of a session.
func (c *Controller) ItemOf(v session.View) (project.Item, error) {
	item := project.Item{Task: task.Task{ID: v.Task, Title: v.Info.Query}}
	if v.Info.Tracker == project.NoTracker || c.Worker != nil {
		return item, nil
	}
	tracker, err := c.Project.Tasks()
	item.Tracker = tracker
	return item, err
}
