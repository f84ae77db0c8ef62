package task

import "time"

// Waiting is an open task that other tasks hold back.
type Waiting struct {
	Task
	For []string // the ids of the tasks that hold it back, as in Tracker.Blockers
}

// WaitingIn returns the tasks of a tracker's list that wait for others, in the order of the
// list. A list without dependencies, such as that of br, has none.
func WaitingIn(all []Task, now time.Time) []Waiting {
	g := graph{make(map[string]Task, len(all)), now}
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
