package task

import (
	"slices"
	"time"
)

// Waiting is an open task that is blocked by other tasks.
type Waiting struct {
	Task
	For []string // IDs of the blocking tasks, as in Tracker.Blockers
}

// WaitingIn returns the blocked tasks in a tracker's list, in the order of the
// list. There are none in a list without dependencies, such as that of br.
func WaitingIn(all []Task, now time.Time) []Waiting {
	g := graphOf(all, now)
	var found []Waiting
	for _, t := range all {
		if t.Status != StatusOpen || t.Assignee != "" || !t.Work() {
			continue
		}
		if ids := g.blockers(t); len(ids) > 0 {
			found = append(found, Waiting{t, ids})
		}
	}
	return found
}

// Links returns the IDs of the tasks in a tracker's list that block a task, and of the open tasks that it blocks.
func Links(all []Task, id string, now time.Time) (blockers, dependents []string) {
	g := graphOf(all, now)
	for _, t := range all {
		if t.Status == StatusClosed {
			continue
		}
		switch ids := g.blockers(t); {
		case t.ID == id:
			blockers = ids
		case slices.Contains(ids, id):
			dependents = append(dependents, t.ID)
		}
	}
	return blockers, dependents
}

// Following returns the tasks in a tracker's list that become ready, one after the other, once those with the given
// IDs and their followers are closed.
func Following(all []Task, ids []string, now time.Time) (found []Task) {
	g := graphOf(all, now)
	waiting := WaitingIn(all, now)
	for len(ids) > 0 {
		for _, id := range ids {
			t := g.tasks[id]
			t.Status = StatusClosed
			g.tasks[id] = t
		}
		ids = nil
		for _, w := range waiting {
			if g.ready(g.tasks[w.ID]) {
				found, ids = append(found, w.Task), append(ids, w.ID)
			}
		}
	}
	return found
}

func graphOf(all []Task, now time.Time) graph {
	g := newGraph(make(map[string]Task, len(all)), now)
	for _, t := range all {
		g.tasks[t.ID] = t
	}
	return g
}
