package main

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// claimTask claims a task in its tracker. A claim of a session that never began,
// or is over, belongs to nobody: coven was killed before it could give it back.
func (d *desk) claimTask(ctx context.Context, j job, actor string) error {
	if j.tracker == nil {
		return nil
	}
	_, err := j.tracker.Claim(ctx, j.task.ID, actor)
	if claimed := (*task.ClaimedError)(nil); errors.As(err, &claimed) && d.house.abandoned(claimed.Owner) {
		if _, err := j.tracker.Release(ctx, j.task.ID, claimed.Owner, ""); err != nil {
			return err
		}
		_, err = j.tracker.Claim(ctx, j.task.ID, actor)
	}
	return err
}

// jobOf is the job of a session that exists.
func (d *desk) jobOf(v session.View) (job, error) {
	j := job{task: task.Task{ID: v.Task, Title: v.Info.Query}}
	if v.Info.Tracker == untrackedName {
		return j, nil
	}
	tracker, err := d.house.tasks()
	j.tracker = tracker
	return j, err
}
