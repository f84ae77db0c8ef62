package conversation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/snapshot"
)

// record is the recorded content of a session.
type record struct {
	view   session.View
	parts  []session.Part
	events []event.Event
}

// savedState is a recorded state of the worktree.
type savedState struct {
	at       int // index of the part after the state, or -1 if there is none
	time     time.Time
	commit   string
	snapshot bool // whether it is a snapshot rather than a commit of the branch
}

// states returns the recorded states of a worktree during which no call was running, oldest first: those
// before calls, and at the start and the end of agents.
func (r record) states() (all []savedState) {
	for i, p := range r.parts {
		if p.Type == typeSnapshot && p.Snapshot != nil {
			all = append(all, savedState{i, p.Time, p.Snapshot.Commit, true})
		}
	}
	for _, e := range r.events {
		start, result := event.StepStart{}, event.Result{}
		switch e.Type {
		case event.StepStarted:
			start = event.As[event.StepStart](e)
		case event.StepCompleted:
			result = event.As[event.Result](e)
		}
		if start.Snapshot != "" {
			all = append(all, savedState{-1, e.Time, start.Snapshot, true})
		}
		if result.Commit != "" {
			all = append(all, savedState{-1, e.Time, result.Commit, false})
		}
	}
	slices.SortStableFunc(all, func(a, b savedState) int { return a.time.Compare(b.time) })
	return all
}

// todosAt returns the to-do list at a time, for the agents of steps.
func (r record) todosAt(at time.Time) (todos []event.Todo) {
	if from := r.view.Info.Forked; from != nil {
		todos = from.Todos
	}
	for _, e := range r.events {
		switch {
		case e.Time.After(at):
			return todos
		case e.Type == event.TodoChanged:
			if list := event.As[event.Todos](e); list.Spawn == "" {
				todos = list.Items
			}
		}
	}
	return todos
}

// Texts for a fork whose files are not those of the message.
const (
	gapBefore = "the files of that moment are not on record: the worktree has those of "
	gapStart  = "the files of that moment are not on record any more: the worktree is as the session began"
	gapOrigin = "the session from which that message was copied is gone: the worktree is as its fork began"
)

// saved sets the to-do list and the files of a fork as they were at a message. For a message that was
// copied from a third session, it reads the records of that session.
func (f *Fork) saved(ctx context.Context, stateAt StateAt, of record, at int) error {
	for of.parts[at].ForkedFrom != "" {
		origin, there, ok := of.origin(of.parts[at].ForkedFrom)
		if !ok {
			f.Gap = gapOrigin
			break
		}
		of, at = origin, there
	}
	f.From.Todos, f.Base = of.todosAt(of.parts[at].Time), of.view.Info.Base
	return f.files(ctx, stateAt, of, at)
}

// files chooses the files of the new worktree: the next recorded state after the message, since each call
// that may change files is preceded by one; otherwise the last state before it; otherwise the state in
// which the session began.
func (f *Fork) files(ctx context.Context, stateAt StateAt, of record, at int) error {
	when, all := of.parts[at].Time, of.states()
	after := slices.IndexFunc(all, func(s savedState) bool { return s.at > at || s.at < 0 && !s.time.Before(when) })
	if after < 0 {
		after = len(all)
	}
	if after < len(all) {
		if found, err := f.take(ctx, stateAt, all[after]); found || err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(all[:after]) {
		if found, err := f.take(ctx, stateAt, s); found || err != nil {
			f.Gap = gapBefore + s.time.Local().Format(time.DateTime)
			return err
		}
	}
	f.Gap = gapStart
	return nil
}

// origin returns the session that this one was forked from, and the index there of the last part of a
// message. It rejects an origin that is not older, because such a record is wrong.
func (r record) origin(message string) (of record, at int, ok bool) {
	from := r.view.Info.Forked
	if from == nil || filepath.Base(from.Session) != from.Session {
		return of, 0, false
	}
	dir := filepath.Join(filepath.Dir(r.view.Dir), from.Session)
	view, err := session.Load(dir)
	if err != nil || !view.Started.Before(r.view.Started) {
		return of, 0, false
	}
	parts, err := session.Parts(dir)
	if err != nil {
		return of, 0, false
	}
	events, err := session.Events(dir)
	at = slices.IndexFunc(parts, func(p session.Part) bool { return p.Last && p.Message == message })
	return record{view, parts, events}, at, err == nil && at >= 0
}

// take chooses a state, unless it is no longer in the repository.
func (f *Fork) take(ctx context.Context, stateAt StateAt, s savedState) (found bool, err error) {
	state, err := stateAt(ctx, s.commit)
	if errors.Is(err, snapshot.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fork session %s: %w", f.From.Session, err)
	}
	if f.Base = state.Tip; s.snapshot {
		f.From.Snapshot = s.commit
	}
	return true, nil
}
