package session

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Journal identifies a state of a session's journal. Two equal ones have the same events.
type Journal struct {
	Session string

	dir   string
	stamp fileStamp
}

// Journals returns the journals of a project's sessions that were written at or after a time, sorted by session.
func Journals(root string, since time.Time) ([]Journal, error) {
	entries, err := entriesOf(root)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	parent, err := os.Open(filepath.Join(root, Dir))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer parent.Close() //nolint:errcheck // read only
	var all []Journal
	for _, e := range entries {
		stamp, ok := stampOf(int(parent.Fd()), e.Name())
		if ok && !time.Unix(0, stamp.mtime).Before(since) {
			all = append(all, Journal{Session: e.Name(), dir: filepath.Join(root, Dir, e.Name()), stamp: stamp})
		}
	}
	return all, nil
}

// Each calls see for the events of the journal, which may be more than those when it was listed. The error is a *DamagedError if
// the journal cannot be read.
func (j Journal) Each(see func(event.Event)) error {
	err := event.Each(filepath.Join(j.dir, eventsFile), func(e event.Event) error { see(e); return nil })
	if err != nil {
		return damaged(j.dir, err)
	}
	return nil
}
