package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/oneline"
)

// maxListed is the number of tasks that an overview lists of each kind.
const maxListed = 10

// PrintOverview prints the sessions of a repository and the tasks of its tracker that are
// ready or wait for others: all of them, or the first few.
func (a *App) PrintOverview(o control.Overview, all bool) error {
	if len(o.Sessions) > 0 {
		if err := a.StatusTable(o.Sessions, o.Short); err != nil {
			return err
		}
	} else {
		next := "coven run -p TEXT"
		if len(o.Ready) > 0 {
			next = "coven run"
		}
		if err := a.Printf("no sessions yet\n  next: %s\n", next); err != nil {
			return err
		}
	}
	if err := a.worktreeList(o, all); err != nil {
		return err
	}
	if o.Others > 0 {
		if err := a.Printf("\nsessions of other users, whose records are private: %d\n", o.Others); err != nil {
			return err
		}
	}
	if o.NoTasks != nil {
		return a.Printf("\n%s\n", cut("the tracker's tasks cannot be read: coven task list shows why", a.width()))
	}
	waiting := make([]task.Task, len(o.Waiting))
	for i, w := range o.Waiting {
		waiting[i] = w.Task
	}
	none := func(int) string { return "" }
	if err := a.taskList("ready to run (coven run)", "coven task ready", o.Ready, none, o.Short, all); err != nil {
		return err
	}
	after := func(i int) string { return "after " + a.idList(o.Waiting[i].For, o.Short) }
	return a.taskList("waiting for other tasks", "coven status --all", waiting, after, o.Short, all)
}

// worktreeList prints the directories of the tasks' worktrees.
func (a *App) worktreeList(o control.Overview, all bool) error {
	id, path := &column{cells: []string{""}}, &column{cells: []string{""}}
	n := 0
	for _, v := range o.Sessions {
		if v.Worktree == "" {
			continue
		}
		if n++; n > maxListed && !all {
			continue
		}
		name := v.Task
		if a.Terminal {
			name = cmp.Or(o.Short[name], name)
		}
		id.add("  " + name)
		path.add(a.shortPath(v.Worktree))
	}
	if n == 0 {
		return nil
	}
	lines := tableLines(a.width(), []*column{id, path}, shrink{path, minColumn})
	text := fmt.Sprintf("\nworktrees: %d\n%s\n", n, strings.Join(lines[1:], "\n"))
	if more := n - len(id.cells) + 1; more > 0 {
		text += cut(fmt.Sprintf("  and %d more: coven worktree list", more), a.width()) + "\n"
	}
	return a.Printf("%s", text)
}

// shortPath returns a path relative to the user's directory, if that is shorter.
func (a *App) shortPath(path string) string {
	dir, err := a.Workdir()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// idList returns the IDs of the tasks that a task waits for.
func (a *App) idList(ids []string, short map[string]string) string {
	const few = 3
	var shown []string
	for _, id := range ids[:min(few, len(ids))] {
		if a.Terminal {
			id = cmp.Or(short[id], id)
		}
		shown = append(shown, id)
	}
	text := strings.Join(shown, ", ")
	if more := len(ids) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// taskList prints tasks below a heading with their number. If it omits tasks, it prints the command that
// lists all.
func (a *App) taskList(heading, allOf string, tasks []task.Task, note func(i int) string, short map[string]string, all bool) error {
	if len(tasks) == 0 {
		return nil
	}
	shown := tasks
	if !all {
		shown = tasks[:min(maxListed, len(tasks))]
	}
	id, priority, title, notes := &column{cells: []string{""}}, &column{cells: []string{""}}, &column{cells: []string{""}}, &column{cells: []string{""}}
	for i, t := range shown {
		name := t.ID
		if a.Terminal {
			name = cmp.Or(short[t.ID], t.ID)
		}
		id.add("  " + name)
		priority.add(fmt.Sprintf("P%d", t.Priority))
		title.add(oneline.Of(t.Title))
		notes.add(note(i))
	}
	lines := tableLines(a.width(), []*column{id, priority, title, notes}, shrink{title, minTitle}, shrink{notes, minColumn}, shrink{title, 0})
	text := fmt.Sprintf("\n%s: %d\n%s\n", heading, len(tasks), strings.Join(lines[1:], "\n"))
	if more := len(tasks) - len(shown); more > 0 {
		text += cut(fmt.Sprintf("  and %d more: %s", more, allOf), a.width()) + "\n"
	}
	return a.Printf("%s", text)
}
