package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// told is the tracker's side of one task, for one session: runner's interface.
// Nothing is written about a task that somebody else has taken over.
type told struct {
	job   project.Item
	actor string
	hide  func(string) string // takes secrets out of what is written
}

func Told(j project.Item, actor string, hide func(string) string) told { return told{j, actor, hide} }

// Close closes the task with what was done and the commit that landed.
func (t told) Close(ctx context.Context, summary, commit string) error {
	if t.job.Tracker == nil {
		return nil
	}
	// What has landed is done, whoever has the task now.
	_, err := t.job.Tracker.Close(ctx, t.job.Task.ID, "", t.hide(strings.TrimSpace(summary+"\n\nLanded as "+commit+".")))
	return err
}

// Block sets the task blocked and says why in a note.
func (t told) Block(ctx context.Context, why string) error {
	if t.job.Tracker == nil {
		return nil
	}
	_, err := t.job.Tracker.Block(ctx, t.job.Task.ID, t.actor, t.hide(why))
	return Taken(err)
}

// Release opens the task again.
func (t told) Release(ctx context.Context, why string) error {
	if t.job.Tracker == nil {
		return nil
	}
	_, err := t.job.Tracker.Release(ctx, t.job.Task.ID, t.actor, t.hide(why))
	return Taken(err)
}

// Note says something on the task.
func (t told) Note(ctx context.Context, text string) error {
	if t.job.Tracker == nil {
		return nil
	}
	_, err := t.job.Tracker.Note(ctx, t.job.Task.ID, t.actor, t.hide(text))
	return Taken(err)
}

// Taken lets a task go that is somebody else's: then it is not ours to change.
func Taken(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}
