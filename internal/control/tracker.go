package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// taskTracker implements the tracker of package runner. Except for Close, it does not change a task that
// another actor has claimed since.
type taskTracker struct {
	item  project.Item
	actor string
	hide  func(string) string // removes secrets from texts
}

// newTaskTracker returns the tracker of one task for a session that claims as actor.
func newTaskTracker(item project.Item, actor string, hide func(string) string) taskTracker {
	return taskTracker{item, actor, hide}
}

// Close closes the task with a summary and the commit that landed.
func (t taskTracker) Close(ctx context.Context, summary, commit string) error {
	if t.item.Tracker == nil {
		return nil
	}
	// A task that has landed is done, even if another actor has claimed it since.
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

// IgnoreClaimed returns nil for the error that another actor has claimed the task.
func IgnoreClaimed(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}
