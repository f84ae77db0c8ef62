package task

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	parentChild     = "parent-child"
	waitsFor        = "waits-for"
	defaultPriority = 2
)

// blocks reports whether an open dependency of this type blocks a task. Parents have other rules; see
// graph.above.
func (d Dependency) blocks() bool {
	return d.Type == "blocks" || d.Type == "conditional-blocks" || d.Type == waitsFor && (d.isExternal() || d.gate.alsoBlocks)
}

// isExternal reports whether the other task is in another tracker.
func (d Dependency) isExternal() bool { return strings.HasPrefix(d.ID, "external:") }

// Work reports whether an agent can work on the task. Containers, and records of other
// programs in beads, are not work.
func (t Task) Work() bool {
	switch t.Type {
	case "epic", "milestone", "convoy", "molecule", "gate", "event", "message", "merge-request", "agent", "role", "rig":
		return false
	}
	return !t.aside
}

// graph is the graph of dependencies between tasks.
type graph struct {
	tasks    map[string]Task
	now      time.Time
	children func() map[string][]string // IDs of the children by the ID of a task, sorted
}

// newGraph returns the graph of tasks, to which tasks can be added before it is first used.
func newGraph(tasks map[string]Task, now time.Time) graph {
	return graph{tasks, now, sync.OnceValue(func() map[string][]string {
		children := map[string][]string{}
		for _, id := range slices.Sorted(maps.Keys(tasks)) {
			for _, parent := range unique(parents(tasks[id])) {
				children[parent] = append(children[parent], id)
			}
		}
		return children
	})}
}

// ready reports whether work on a task can start now.
func (g graph) ready(t Task) bool {
	return t.Status == StatusOpen && t.Assignee == "" && t.Work() &&
		!t.DeferUntil.After(g.now) && len(g.blockers(t)) == 0
}

// blockers returns the IDs of the tasks that block t: dependencies of t,
// dependencies of its ancestors, and ancestors that are blocked by their own status.
func (g graph) blockers(t Task) []string {
	ids := g.direct(t)
	for _, a := range g.above(t) {
		ids = append(ids, g.direct(a)...)
		if a.Status == StatusBlocked || a.Status == statusDeferred || a.DeferUntil.After(g.now) {
			ids = append(ids, a.ID)
		}
	}
	return unique(ids)
}

// direct returns the open tasks that t itself depends on.
func (g graph) direct(t Task) []string {
	var ids []string
	for _, d := range t.DependsOn {
		if d.blocks() && g.holds(d.ID) {
			ids = append(ids, d.ID)
		}
		if d.Type == waitsFor {
			ids = append(ids, g.gated(d)...)
		}
	}
	return ids
}

// gated returns the open children of a task that another waits for.
func (g graph) gated(d Dependency) []string {
	var open []string
	for _, id := range g.children()[d.ID] {
		switch {
		case g.holds(id):
			open = append(open, id)
		case d.gate.anyChild && g.tasks[id].Status == StatusClosed:
			return nil
		}
	}
	return open
}

// holds reports whether a task blocks its dependents. A missing task does not. A task
// of another tracker does, because its state is unknown. A pinned task does not, because
// it is never completed.
func (g graph) holds(id string) bool {
	t, ok := g.tasks[id]
	if !ok {
		return strings.HasPrefix(id, "external:")
	}
	return t.Status != StatusClosed && t.Status != statusPinned
}

// above returns the ancestors of t that are not closed, nearest first.
func (g graph) above(t Task) []Task {
	var found []Task
	seen := map[string]bool{t.ID: true}
	for queue := parents(t); len(queue) > 0; queue = queue[1:] {
		p, ok := g.tasks[queue[0]]
		if !ok || seen[p.ID] || p.Status == StatusClosed {
			continue
		}
		seen[p.ID] = true
		found = append(found, p)
		queue = append(queue, parents(p)...)
	}
	return found
}

func parents(t Task) []string {
	var ids []string
	if t.Parent != "" {
		ids = append(ids, t.Parent)
	}
	for _, d := range t.DependsOn {
		if d.Type == parentChild {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// cycle returns open tasks that wait for each other, among those that ids wait for. It returns
// nil if there are none.
func (g graph) cycle(ids []string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		if at := slices.Index(path, id); at >= 0 {
			return slices.Clone(path[at:])
		}
		if done[id] || !g.holds(id) {
			return nil
		}
		path = append(path, id)
		for _, next := range append(g.direct(g.tasks[id]), parents(g.tasks[id])...) {
			if found := visit(next); found != nil {
				return found
			}
		}
		path, done[id] = path[:len(path)-1], true
		return nil
	}
	for _, id := range ids {
		if found := visit(id); found != nil {
			return found
		}
	}
	return nil
}

// inOrder sorts tasks by the order of work: priority, age, id.
func inOrder(tasks []Task) []Task {
	slices.SortFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return tasks
}

func unique(words []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, w := range words {
		if !seen[w] {
			kept = append(kept, w)
		}
		seen[w] = true
	}
	return kept
}
