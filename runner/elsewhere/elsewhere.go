// Package elsewhere lets a session end whose task another machine has landed.
package elsewhere

import (
	"context"

	"github.com/coven-run/coven/internal/event"
)

// A Journal is the record of the session.
type Journal interface {
	Last(types ...event.Type) (event.Event, bool)
	Append(e event.Event, data any) error
}

// A Landing finds landings on the target.
type Landing interface {
	// Recover completes or undoes an interrupted landing of this session.
	Recover(ctx context.Context, intent event.Landing) (landed bool, err error)
	// Elsewhere returns the commit with which another machine has landed the task, or "".
	Elsewhere(ctx context.Context) (commit string, err error)
}

// Record records the landing of the task on another machine, if there is one. Before that, it undoes an own landing that was interrupted. on is nil if no other
// machine can have the session.
func Record(ctx context.Context, j Journal, on Landing, target string) (landed bool, err error) {
	if on == nil {
		return false, nil
	}
	if intent, ok := j.Last(event.LandIntended); ok {
		if own, err := on.Recover(ctx, event.As[event.Landing](intent)); err != nil || own {
			return false, err
		}
	}
	commit, err := on.Elsewhere(ctx)
	if err != nil || commit == "" {
		return false, err
	}
	return true, j.Append(event.Event{Type: event.LandDone}, event.Landing{Target: target, New: commit})
}
