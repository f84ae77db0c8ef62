package main

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// job is a task to run.
type job struct {
	task    task.Task
	tracker task.Tracker // nil: a task of the user's own words, nobody is told
}

// untrackedName is what a session records as the tracker of a task of the
// user's own words.
const untrackedName = "none"

func (j job) trackerName() string {
	if j.tracker == nil {
		return untrackedName
	}
	return j.tracker.Kind()
}

// told is the tracker's side of one task, for one session: runner's interface.
// Nothing is written about a task that somebody else has taken over.
type told struct {
	job   job
	actor string
	hide  func(string) string // takes secrets out of what is written
}

func (j job) told(actor string, hide func(string) string) told { return told{j, actor, hide} }

// Close closes the task with what was done and the commit that landed.
func (t told) Close(ctx context.Context, summary, commit string) error {
	if t.job.tracker == nil {
		return nil
	}
	// What has landed is done, whoever has the task now.
	_, err := t.job.tracker.Close(ctx, t.job.task.ID, "", t.hide(strings.TrimSpace(summary+"\n\nLanded as "+commit+".")))
	return err
}

// Block sets the task blocked and says why in a note.
func (t told) Block(ctx context.Context, why string) error {
	if t.job.tracker == nil {
		return nil
	}
	_, err := t.job.tracker.Block(ctx, t.job.task.ID, t.actor, t.hide(why))
	return taken(err)
}

// Release opens the task again.
func (t told) Release(ctx context.Context, why string) error {
	if t.job.tracker == nil {
		return nil
	}
	_, err := t.job.tracker.Release(ctx, t.job.task.ID, t.actor, t.hide(why))
	return taken(err)
}

// Note says something on the task.
func (t told) Note(ctx context.Context, text string) error {
	if t.job.tracker == nil {
		return nil
	}
	_, err := t.job.tracker.Note(ctx, t.job.task.ID, t.actor, t.hide(text))
	return taken(err)
}

// taken lets a task go that is somebody else's: then it is not ours to change.
func taken(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}

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
