package session

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session/away"
)

// Mirror makes the record of a session the one that another machine has: its state, and its events unless they are nil. decide returns them while no process writes the
// session. Then Open refuses the session until it has been imported. The error is ErrBusy if a process is writing it.
func Mirror(root, id string, now func() time.Time, decide func() (*away.State, []byte, error)) error {
	dir := filepath.Join(root, Dir, id)
	first, err := event.First(filepath.Join(dir, eventsFile))
	if err != nil {
		return err
	}
	s, err := open(dir, first.Task, first.TraceID, now)
	if err != nil {
		return err
	}
	state, events, err := decide()
	if err == nil && events != nil {
		begun := *state
		begun.Partial = true // before the events: another machine has them
		err = away.Write(dir, &begun)
		failpoint.Point("mirror.begun")
		if err == nil {
			err = away.Rewrite(dir, eventsFile, fmt.Sprintf("events-before-%.12s.jsonl", cmp.Or(state.Tip, state.Landed, "end")), events)
		}
		failpoint.Point("mirror.rewritten")
		forget(root, id, now())
	}
	if err == nil {
		err = away.Write(dir, state)
	}
	failpoint.Point("mirror.done")
	if err = errors.Join(err, s.Close()); err != nil || events == nil {
		return err
	}
	if s, err = open(dir, first.Task, first.TraceID, now); err != nil {
		return err
	}
	return errors.Join(s.writeViews(), s.Close())
}
