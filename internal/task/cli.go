package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// CLI is a tracker that uses a program: bd, or br, which has the same commands. It
// does not cache tasks: every call runs the program, one process at a time, because each
// run costs at least a tenth of a second of CPU time.
type CLI struct {
	kind    string // bd or br
	program string // absolute path
	dir     string // working directory of the program
	beads   string
	environ []string
	limit   time.Duration // of one run
	now     func() time.Time

	turn      chan struct{} // holds one element while the program runs
	plain     atomic.Bool   // the program does not support the flags that filter ready
	populated atomic.Bool   // the program has listed a task

	metadata    metadata // of the .beads directory
	versionFile string   // stores the version of bd; empty to store nothing

	// Set by checkVersion, in its turn.
	checked bool
	version string // of bd; empty if it is unknown
	refused error  // a *VersionError
}

func newCLI(kind, program, mainCheckout, beads string, environ []string) *CLI {
	dir := mainCheckout
	if home := filepath.Dir(beads); filepath.Base(beads) == directory && isDirectory(home) {
		dir = home // a .beads directory below the top of the checkout
	}
	return &CLI{
		kind: kind, program: program, dir: dir, beads: beads, environ: environ,
		limit: timeLimit, now: time.Now, turn: make(chan struct{}, 1),
	}
}

// Kind returns bd or br.
func (c *CLI) Kind() string { return c.kind }

// Where returns the program and its .beads directory.
func (c *CLI) Where() string { return c.kind + " (" + c.beads + ")" }

// List returns all tasks, including closed ones, by priority, age and ID.
func (c *CLI) List(ctx context.Context) ([]Task, error) {
	out, err := c.run(ctx, "list", "--all", "--json", "-n", "0")
	if err != nil {
		return nil, err
	}
	all, err := out.tasks()
	if err == nil && len(all) == 0 {
		err = c.checkEmpty(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.populated.Store(c.populated.Load() || len(all) > 0)
	return inOrder(all), nil
}

// Ready returns the tasks that are ready by the rules of the program and of coven: bd
// also lists epics and templates, and lists a task even if its parent is blocked by
// status.
func (c *CLI) Ready(ctx context.Context) ([]Task, error) {
	found, err := c.askReady(ctx)
	if err == nil && len(found) == 0 {
		err = c.checkEmpty(ctx)
	}
	if err != nil {
		return nil, err
	}
	var able, far []Task
	for _, t := range found {
		if t.Status != StatusOpen || t.Assignee != "" || !t.Work() || t.DeferUntil.After(c.now()) {
			continue
		}
		able = append(able, t)
		if len(parents(t)) > 0 {
			far = append(far, t)
		}
	}
	g, err := c.around(ctx, far)
	if err != nil {
		return nil, err
	}
	ready := []Task{}
	for _, t := range able {
		if g.ready(t) {
			ready = append(ready, t)
		}
	}
	return inOrder(ready), nil
}

func (c *CLI) askReady(ctx context.Context) ([]Task, error) {
	args := []string{"ready", "--json", "-n", "0"}
	var out *output
	var err error
	if !c.plain.Load() {
		out, err = c.run(ctx, append(args, "--exclude-type=epic", "--unassigned")...)
	}
	if unknownFlag(err) || c.plain.Load() {
		c.plain.Store(true)
		out, err = c.run(ctx, args...)
	}
	if err != nil {
		return nil, err
	}
	return out.tasks()
}

// around reads the ancestors of tasks, which may block them although the program lists them as ready, and the tasks
// that block these.
func (c *CLI) around(ctx context.Context, tasks []Task) (graph, error) {
	g := newGraph(map[string]Task{}, c.now())
	asked := map[string]bool{}
	for {
		var ids []string
		for _, t := range tasks {
			for _, id := range parents(t) {
				if known, ok := g.tasks[id]; !asked[id] && (!ok || known.Status != StatusClosed) {
					asked[id] = true
					ids = append(ids, id)
				}
			}
		}
		if len(ids) == 0 {
			return g, nil
		}
		tasks = tasks[:0:0]
		for len(ids) > 0 {
			some := ids[:min(len(ids), perCall)]
			ids = ids[len(some):]
			shown, err := c.show(ctx, g, some...)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return g, err
			}
			tasks = append(tasks, shown...)
		}
	}
}

// show reads tasks into g, with those dependencies that the program prints in full.
// It returns the tasks that exist.
func (c *CLI) show(ctx context.Context, g graph, ids ...string) ([]Task, error) {
	out, err := c.run(ctx, append([]string{"show", "--json", "--"}, ids...)...)
	if err != nil {
		return nil, c.notFound(strings.Join(ids, ", "), err)
	}
	found, near, err := out.issues()
	if err != nil {
		return nil, err
	}
	for _, t := range near {
		if _, known := g.tasks[t.ID]; !known {
			g.tasks[t.ID] = t
		}
	}
	for _, t := range found {
		g.tasks[t.ID] = t
	}
	return found, nil
}

// notFound converts the program's "no such issue" to ErrNotFound.
func (c *CLI) notFound(id string, err error) error {
	if program := (*ProgramError)(nil); errors.As(err, &program) && missing.MatchString(program.Message) {
		return fmt.Errorf("task %s: %w in %s", id, ErrNotFound, c.Where())
	}
	return err
}

// look reads one task into a graph. It rejects partial IDs, which the program accepts.
func (c *CLI) look(ctx context.Context, id string) (Task, graph, error) {
	g := newGraph(map[string]Task{}, c.now())
	absent := fmt.Errorf("task %s: %w in %s", id, ErrNotFound, c.Where())
	if id == "" || strings.ContainsRune(id, 0) {
		return Task{}, g, absent
	}
	found, err := c.show(ctx, g, id)
	if err != nil {
		return Task{}, g, err
	}
	for _, t := range found {
		if t.ID == id {
			return t, g, nil
		}
	}
	return Task{}, g, absent
}

// Get returns one task, or ErrNotFound if no task has exactly that ID.
func (c *CLI) Get(ctx context.Context, id string) (Task, error) {
	t, _, err := c.look(ctx, id)
	return t, err
}

// Blockers returns the IDs of the open tasks that block a task. They include
// ancestors that are blocked or deferred themselves.
func (c *CLI) Blockers(ctx context.Context, id string) ([]string, error) {
	t, g, err := c.look(ctx, id)
	if err != nil {
		return nil, err
	}
	if t, g, err = c.family(ctx, t, g); err != nil {
		return nil, err
	}
	return g.blockers(t), nil
}

// family adds the ancestors of a task to its graph. It reads all tasks if the ancestors do not show the blockers of the task:
// the program prints neither the children of a task with it, nor dependencies on other trackers.
func (c *CLI) family(ctx context.Context, t Task, near graph) (Task, graph, error) {
	g, err := c.around(ctx, []Task{t})
	for id, one := range near.tasks {
		if _, known := g.tasks[id]; !known {
			g.tasks[id] = one
		}
	}
	waits := func(t Task) bool {
		return slices.ContainsFunc(t.DependsOn, func(d Dependency) bool { return d.Type == waitsFor })
	}
	if err != nil || t.depends <= len(t.DependsOn) && !slices.ContainsFunc(append(g.above(t), t), waits) {
		return t, g, err
	}
	all, err := c.List(ctx)
	for _, one := range all {
		g.tasks[one.ID] = one
		if one.ID == t.ID {
			t.DependsOn = one.DependsOn
		}
	}
	return t, g, err
}
