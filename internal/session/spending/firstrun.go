package spending

import (
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// StepRun is the first run of a step in a session, with all its attempts and iterations.
type StepRun struct {
	Before   []event.Event // of the session
	Snapshot string        // commit of the worktree's snapshot at the start
	Landed   string        // commit of the last landing before the start; empty if there was none
	After    session.View  // of the session since the start
	Used     budget.Amount // Wall is the working time
}

// FirstRun returns the first run of a step in the session in dir. path has the names of the steps around it, outermost first, and its
// own name. ok is false if the step has not run.
func FirstRun(dir string, path []string) (r StepRun, ok bool, err error) {
	events, err := session.Events(dir)
	if err != nil {
		return r, false, err
	}
	at := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == event.StepStarted && isIn(e.Path, path) })
	if at < 0 {
		return r, false, nil
	}
	r.Before, r.Snapshot = events[:at], event.As[event.StepStart](events[at]).Snapshot
	before, err := session.Fold(r.Before)
	if err != nil {
		return r, false, err
	}
	r.Landed = before.Landed.New
	around := iterationsAround(events[at].Path, path)
	for _, e := range events[at:] {
		if e.Type == event.StepCompleted && isIn(e.Path, path) && iterationsAround(e.Path, path) == around {
			r.Used = r.Used.Add(event.As[event.Result](e).Used)
		}
	}
	r.After, err = session.Fold(events[at:])
	return r, err == nil, err
}

// isIn reports whether the path of a leaf begins with names of steps. In the path, each has the number of its iteration or attempt.
func isIn(leaf string, path []string) bool {
	names := strings.Split(leaf, "/")
	if len(names) < len(path) || len(path) == 0 {
		return false
	}
	for i, step := range path {
		name := names[i]
		if j := strings.IndexAny(name, "#["); j >= 0 {
			name = name[:j]
		}
		if name != step {
			return false
		}
	}
	return true
}

// iterationsAround returns the part of a leaf's path before the name of the step at path.
func iterationsAround(leaf string, path []string) string {
	return strings.Join(strings.Split(leaf, "/")[:len(path)-1], "/")
}
