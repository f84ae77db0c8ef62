package main

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/task"
)

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
