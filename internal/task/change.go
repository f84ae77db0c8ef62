package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/jsonline"
)

// Claim claims a task for actor: its status becomes in_progress and its assignee
// actor. It succeeds if the task is open, or blocked by status only, and unassigned or
// assigned to actor; it changes nothing if actor has already claimed it. Errors:
// ErrNotFound, ErrClaimed (a *ClaimedError), ErrNotClaimable (a *StatusError), and
// *BlockedError if open tasks other than those in despite block it.
func (f *File) Claim(ctx context.Context, id, actor string, despite ...string) (Task, error) {
	if actor == "" {
		return Task{}, errors.New("claim a task: no actor given")
	}
	return f.change(ctx, id, func(d *document, t Task) ([]jsonline.Edit, error) {
		if t.Status == StatusInProgress && t.Assignee == actor {
			return nil, nil
		}
		if err := claimable(f.graph(d), t, actor, despite); err != nil {
			return nil, err
		}
		e := f.edits().set("status", StatusInProgress).set("assignee", actor)
		if t.StartedAt.IsZero() {
			e.now("started_at")
		}
		return e.done()
	})
}

func claimable(g graph, t Task, actor string, despite []string) error {
	switch {
	case t.Status == StatusInProgress && t.Assignee != "", t.Assignee != "" && t.Assignee != actor && t.Status != StatusClosed:
		return &ClaimedError{ID: t.ID, Owner: t.Assignee}
	case t.Status != StatusOpen && t.Status != StatusBlocked:
		return &StatusError{ID: t.ID, Status: t.Status}
	}
	ids := slices.DeleteFunc(g.blockers(t), func(id string) bool { return slices.Contains(despite, id) })
	if len(ids) > 0 {
		return &BlockedError{ID: t.ID, Blockers: ids}
	}
	return nil
}

// checkOwner returns an error if another actor has claimed the task.
func checkOwner(t Task, actor string) error {
	if actor != "" && t.Assignee != "" && t.Assignee != actor {
		return &ClaimedError{ID: t.ID, Owner: t.Assignee}
	}
	return nil
}

// Close closes a task for actor, even if it is blocked. Closing it again changes nothing
// unless the reason differs: the last reason applies.
func (f *File) Close(ctx context.Context, id, actor, reason string) (Task, error) {
	return f.change(ctx, id, func(_ *document, t Task) ([]jsonline.Edit, error) {
		if t.Status == StatusClosed && (reason == "" || t.CloseReason == reason) {
			return nil, nil
		}
		if err := checkOwner(t, actor); err != nil && t.Status != StatusClosed {
			return nil, err
		}
		e := f.edits().set("status", StatusClosed)
		if t.Status != StatusClosed || t.ClosedAt.IsZero() {
			e.now("closed_at")
		}
		if reason != "" {
			e.set("close_reason", reason)
		}
		return e.done()
	})
}

// Block sets a task's status to blocked, removes its assignee and appends note to its
// notes, for actor. Blocking it again with the same note changes nothing. A closed
// task does not change.
func (f *File) Block(ctx context.Context, id, actor, note string) (Task, error) {
	return f.change(ctx, id, func(_ *document, t Task) ([]jsonline.Edit, error) {
		if t.Status == StatusClosed || t.Status == StatusBlocked && t.Assignee == "" && noted(t.Notes, note) {
			return nil, nil
		}
		if err := checkOwner(t, actor); err != nil {
			return nil, err
		}
		return f.edits().set("status", StatusBlocked).remove("assignee").note(t.Notes, note).done()
	})
}

// Release removes a task's assignee and opens the task if it was in progress or
// blocked, for actor. A non-empty note is appended to its notes. Releasing it again
// with the same note changes nothing. A closed task does not change.
func (f *File) Release(ctx context.Context, id, actor, note string) (Task, error) {
	return f.change(ctx, id, func(_ *document, t Task) ([]jsonline.Edit, error) {
		held := t.Status == StatusInProgress || t.Status == StatusBlocked
		if t.Status == StatusClosed || !held && t.Assignee == "" && noted(t.Notes, note) {
			return nil, nil
		}
		if err := checkOwner(t, actor); err != nil {
			return nil, err
		}
		e := f.edits().remove("assignee").note(t.Notes, note)
		if held {
			e.set("status", StatusOpen)
		}
		return e.done()
	})
}

// Note appends note to a task's notes, for actor.
func (f *File) Note(ctx context.Context, id, actor, note string) (Task, error) {
	return f.change(ctx, id, func(_ *document, t Task) ([]jsonline.Edit, error) {
		if noted(t.Notes, note) {
			return nil, nil
		}
		if err := checkOwner(t, actor); err != nil {
			return nil, err
		}
		return f.edits().note(t.Notes, note).done()
	})
}

// noted reports whether notes end with note.
func noted(notes, note string) bool {
	return note == "" || notes == note || strings.HasSuffix(notes, "\n"+note)
}

// change changes one task's line under the lock. decide returns the edits.
func (f *File) change(ctx context.Context, id string, decide func(*document, Task) ([]jsonline.Edit, error)) (Task, error) {
	var t Task
	err := f.update(ctx, func(d *document) error {
		before, err := d.get(id)
		if err != nil {
			return err
		}
		edits, err := decide(d, before)
		if err == nil && len(edits) > 0 {
			err = d.patch(id, edits)
		}
		t = d.tasks[id]
		return err
	})
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// edits collects changes to one line.
type edits struct {
	at   string
	list []jsonline.Edit
	err  error
}

func (f *File) edits() *edits { return &edits{at: stamp(f.now())} }

// stamp formats a time with full precision, so that tasks added within a second keep
// their order.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (e *edits) set(name string, value any) *edits {
	one, err := jsonline.Set(name, value)
	e.list, e.err = append(e.list, one), errors.Join(e.err, err)
	return e
}

func (e *edits) remove(name string) *edits {
	e.list = append(e.list, jsonline.Edit{Name: name})
	return e
}

func (e *edits) now(name string) { e.set(name, e.at) }

// note appends to the notes unless they already end with it.
func (e *edits) note(notes, note string) *edits {
	switch {
	case noted(notes, note):
		return e
	case notes == "":
		return e.set("notes", note)
	}
	return e.set("notes", notes+"\n"+note)
}

func (e *edits) done() ([]jsonline.Edit, error) {
	e.now("updated_at")
	if e.err != nil {
		return nil, fmt.Errorf("change a task: %w", e.err)
	}
	return e.list, nil
}
