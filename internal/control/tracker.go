package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// taskTracker implements the tracker of package runner. It does not write to a
// task that someone else has claimed in the meantime.
type taskTracker struct {
	item  project.Item
	actor string
	hide  func(string) string // removes secrets from what is written
}

// newTaskTracker returns the tracker of one task for a session that claims as actor.
func newTaskTracker(item project.Item, actor string, hide func(string) string) taskTracker {
	return taskTracker{item, actor, hide}
}

// Close closes the task with what was done and the commit that landed.
func (t taskTracker) Close(ctx context.Context, summary, commit string) error {
	if t.item.Tracker == nil {
		return nil
	}
	// A task that has landed is done, whoever has claimed it now.
	_, err := t.item.Tracker.Close(ctx, t.item.Task.ID, "", t.hide(strings.TrimSpace(summary+"\n\nLanded as "+commit+".")))
	return err
}

// Block marks the task as blocked and adds the reason as a note.
func (t taskTracker) Block(ctx context.Context, why string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Block(ctx, t.item.Task.ID, t.actor, t.hide(why))
	return IgnoreClaimed(err)
}

// Release reopens the task.
func (t taskTracker) Release(ctx context.Context, why string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Release(ctx, t.item.Task.ID, t.actor, t.hide(why))
	return IgnoreClaimed(err)
}

// Note adds a note to the task.
func (t taskTracker) Note(ctx context.Context, text string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Note(ctx, t.item.Task.ID, t.actor, t.hide(text))
	return IgnoreClaimed(err)
}

// IgnoreClaimed returns nil for the error that someone else has claimed the task.
func IgnoreClaimed(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}
