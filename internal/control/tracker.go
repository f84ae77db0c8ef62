package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// taskTracker is the tracker's side of one task, for one session: runner's interface.
// It writes nothing about a task that someone else has claimed meanwhile.
type taskTracker struct {
	item  project.Item
	actor string
	hide  func(string) string // takes secrets out of what is written
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
	// What has landed is done, whoever has the task now.
	_, err := t.item.Tracker.Close(ctx, t.item.Task.ID, "", t.hide(strings.TrimSpace(summary+"\n\nLanded as "+commit+".")))
	return err
}

// Block sets the task blocked and says why in a note.
func (t taskTracker) Block(ctx context.Context, why string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Block(ctx, t.item.Task.ID, t.actor, t.hide(why))
	return IgnoreClaimed(err)
}

// Release opens the task again.
func (t taskTracker) Release(ctx context.Context, why string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Release(ctx, t.item.Task.ID, t.actor, t.hide(why))
	return IgnoreClaimed(err)
}

// Note says something on the task.
func (t taskTracker) Note(ctx context.Context, text string) error {
	if t.item.Tracker == nil {
		return nil
	}
	_, err := t.item.Tracker.Note(ctx, t.item.Task.ID, t.actor, t.hide(text))
	return IgnoreClaimed(err)
}

// IgnoreClaimed drops the error that someone else has the task.
func IgnoreClaimed(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}
