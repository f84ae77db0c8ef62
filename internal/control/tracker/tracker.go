// Package tracker adapts the tracker of a task to the runner's interface.
package tracker

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// Tracker is the tracker of one task, for a session. Except for Close, it does not change a task that another actor has
// claimed since.
type Tracker struct {
	Item  project.Item
	Actor string                   // the session, as which it claims
	Hide  func(text string) string // removes secrets from texts
	// Landed is called before a task whose change has landed is closed. After a crash it is called again.
	Landed func(context.Context)
}

// Close closes the task with a summary and the commit that landed.
func (t Tracker) Close(ctx context.Context, summary, commit string) error {
	t.Landed(ctx)
	if t.Item.Tracker == nil {
		return nil
	}
	// A task that has landed is done, even if another actor has claimed it since.
	_, err := t.Item.Tracker.Close(ctx, t.Item.Task.ID, "", t.Hide(strings.TrimSpace(summary+"\n\nLanded as "+commit+".")))
	return err
}

// Block marks the task as blocked and adds the reason as a note.
func (t Tracker) Block(ctx context.Context, why string) error {
	if t.Item.Tracker == nil {
		return nil
	}
	_, err := t.Item.Tracker.Block(ctx, t.Item.Task.ID, t.Actor, t.Hide(why))
	return IgnoreClaimed(err)
}

// Release reopens the task.
func (t Tracker) Release(ctx context.Context, why string) error {
	if t.Item.Tracker == nil {
		return nil
	}
	_, err := t.Item.Tracker.Release(ctx, t.Item.Task.ID, t.Actor, t.Hide(why))
	return IgnoreClaimed(err)
}

// Note adds a note to the task.
func (t Tracker) Note(ctx context.Context, text string) error {
	if t.Item.Tracker == nil {
		return nil
	}
	_, err := t.Item.Tracker.Note(ctx, t.Item.Task.ID, t.Actor, t.Hide(text))
	return IgnoreClaimed(err)
}

// Return closes the task if the change of a session that is over has landed, and reopens it otherwise.
func (t Tracker) Return(ctx context.Context, v session.View) error {
	give := func() error { return t.Release(ctx, "coven: "+v.Detail) }
	if v.Landed.New != "" {
		give = func() error { return t.Close(ctx, v.Summary, v.Landed.New) }
	}
	if err := give(); !errors.Is(err, task.ErrNotFound) { // the task was deleted
		return err
	}
	return nil
}

// IgnoreClaimed returns nil for the error that another actor has claimed the task.
func IgnoreClaimed(err error) error {
	if errors.As(err, new(*task.ClaimedError)) {
		return nil
	}
	return err
}
