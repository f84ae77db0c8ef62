package task

import "time"

// Waiting is an open task that is blocked by other tasks.
type Waiting struct {
	Task
	For []string // IDs of the blocking tasks, as in Tracker.Blockers
}

// WaitingIn returns the blocked tasks in a tracker's list, in the order of the
// list. There are none in a list without dependencies, such as that of br.
func WaitingIn(all []Task, now time.Time) []Waiting {
	g := newGraph(make(map[string]Task, len(all)), now)
	for _, t := range all {
		g.tasks[t.ID] = t
	}
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
