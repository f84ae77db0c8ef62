package main

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// job is a task to run and where its news go.
type job struct {
	task    task.Task
	tracker trackerOf
}

// of is the job in the hands of actor: what others have is not changed.
func (j job) of(actor string) job {
	if t, ok := j.tracker.(tracked); ok {
		t.actor = actor
		j.tracker = t
	}
	return j
}

// trackerOf is the tracker's side of one task.
type trackerOf interface {
	Claim(ctx context.Context, actor string) error
	Close(ctx context.Context, summary, commit string) error
	Block(ctx context.Context, why string) error
	Release(ctx context.Context, why string) error
}

// tracked is a task in a tracker.
type tracked struct {
	file  *task.File
	id    string
	actor string // who may change it; anybody when empty
}

// Claim takes the task in the tracker.
func (t tracked) Claim(ctx context.Context, actor string) error {
	_, err := t.file.Claim(ctx, t.id, actor)
	return err
}

// Close closes the task with what was done and the commit that landed.
func (t tracked) Close(ctx context.Context, summary, commit string) error {
	_, err := t.file.Close(ctx, t.id, t.actor, strings.TrimSpace(summary+"\n\nLanded as "+commit+"."))
	return err
}

// Block sets the task blocked and says why in a note.
func (t tracked) Block(ctx context.Context, why string) error {
	_, err := t.file.Block(ctx, t.id, t.actor, why)
	return err
}

// Release opens the task again.
func (t tracked) Release(ctx context.Context, why string) error {
	_, err := t.file.Release(ctx, t.id, t.actor, why)
	return err
}

// untracked is a task of the user's own words: nobody is told.
type untracked struct{}

// Claim does nothing.
func (untracked) Claim(context.Context, string) error { return nil }

// Close does nothing.
func (untracked) Close(context.Context, string, string) error { return nil }

// Block does nothing.
func (untracked) Block(context.Context, string) error { return nil }

// Release does nothing.
func (untracked) Release(context.Context, string) error { return nil }

// untrackedName is what a session records as the tracker of a task of the
// user's own words.
const untrackedName = "none"

func trackerName(j job) string {
	if _, ok := j.tracker.(tracked); ok {
		return "jsonl"
	}
	return untrackedName
}

// actorPrefix and a session's id are the name under which coven claims a task.
const actorPrefix = "coven/"

// claimTask claims a task in its tracker. A claim of a session that never began,
// or is over, belongs to nobody: coven was killed before it could give it back.
func (d *desk) claimTask(ctx context.Context, j job, actor string) error {
	err := j.tracker.Claim(ctx, actor)
	if claimed := (*task.ClaimedError)(nil); errors.As(err, &claimed) && d.house.abandoned(claimed.Owner) {
		if err := j.of(claimed.Owner).tracker.Release(ctx, ""); err != nil {
			return err
		}
		return j.tracker.Claim(ctx, actor)
	}
	return err
}

// abandoned says whether a task's owner is a session that will not work on it.
func (h *house) abandoned(owner string) bool {
	id, ok := strings.CutPrefix(owner, actorPrefix)
	return ok && (session.NeverBegan(h.repo.Root, id) || session.IsOver(h.repo.Root, id))
}

// jobOf is the job of a session that exists.
func (d *desk) jobOf(v session.View) (job, error) {
	j := job{task: task.Task{ID: v.Task, Title: v.Info.Query}, tracker: untracked{}}
	if v.Info.Tracker == untrackedName {
		return j, nil
	}
	tracker, err := d.house.tasks()
	if err != nil {
		return j, err
	}
	j.tracker = tracked{tracker, v.Task, actorPrefix + v.ID}
	return j, nil
}
