package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// claimTask claims a task in its tracker. A claim of a session that never began,
// or is over, belongs to nobody: coven was killed before it could give it back.
func (d *Controller) claimTask(ctx context.Context, j project.Item, actor string) error {
	if j.Tracker == nil {
		return nil
	}
	_, err := j.Tracker.Claim(ctx, j.Task.ID, actor)
	if claimed := (*task.ClaimedError)(nil); errors.As(err, &claimed) && d.Project.Abandoned(claimed.Owner) {
		if _, err := j.Tracker.Release(ctx, j.Task.ID, claimed.Owner, ""); err != nil {
			return err
		}
		_, err = j.Tracker.Claim(ctx, j.Task.ID, actor)
	}
	return err
}

// JobOf is the job of a session that exists.
func (d *Controller) JobOf(v session.View) (project.Item, error) {
	j := project.Item{Task: task.Task{ID: v.Task, Title: v.Info.Query}}
	if v.Info.Tracker == project.NoTracker {
		return j, nil
	}
	tracker, err := d.Project.Tasks()
	j.Tracker = tracker
	return j, err
}
