package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// blocked returns an error if a named task waits for one that is not named, too. Without names, all are ready.
func (o *runOptions) blocked(ctx context.Context, p project.Planned, item project.Item, todo []project.Item) (*task.BlockedError, error) {
	if item.Tracker == nil || p.Continues || len(o.tasks) == 0 {
		return nil, nil
	}
	ids, err := item.Tracker.Blockers(ctx, item.Task.ID)
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(todo, func(other project.Item) bool { return other.Task.ID == id })
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return &task.BlockedError{ID: item.Task.ID, Blockers: ids}, nil
}

// list prints the tasks that would run.
func (o *runOptions) list(ctx context.Context, proj *project.Project, todo []project.Item, branch string) error {
	code, tasks, running := exit.OK, []project.Planned{}, []string{}
	costs := estimates{project: proj}
	for _, item := range todo {
		p, err := proj.WouldRun(item, o.grimoire)
		if err != nil {
			return err
		}
		switch blocked, err := o.blocked(ctx, p, item, todo); {
		case err != nil:
			return err
		case p.Problem != "":
			code = exit.Usage
		case blocked != nil:
			p.Problem, code = blocked.Error(), exit.Worse(code, exit.Code(blocked))
		default:
			running = append(running, item.Task.ID)
			p.Estimate = costs.add(p.Grimoire)
		}
		tasks = append(tasks, p)
	}
	if o.json {
		if err := o.app.PrintJSON(tasks); err != nil {
			return err
		}
		return exit.Status(code)
	}
	for _, p := range tasks {
		text := fmt.Sprintf("%s  P%d  %s  (%s: %s)\n", terminal.Printable(p.ID), p.Priority, terminal.Clip(p.Title, 80), terminal.Printable(p.Grimoire), terminal.Printable(p.Why))
		if p.Problem != "" {
			text += "    CANNOT RUN: " + strings.ReplaceAll(terminal.PrintableLines(p.Problem), "\n", "\n    ") + "\n"
		}
		if err := o.app.Printf("%s", text); err != nil {
			return err
		}
	}
	for _, line := range costs.lines() {
		if err := o.app.Printf("%s\n", line); err != nil {
			return err
		}
	}
	more, err := o.following(ctx, proj, running)
	if err != nil {
		return err
	}
	if err := o.app.Printf("%s would run, landing on %s%s\n", oneline.Count(len(running), "task"), terminal.Printable(branch), more); err != nil {
		return err
	}
	return exit.Status(code)
}

// following says how many tasks would run after those with the given IDs, which they wait for. Tasks that are named run alone.
func (o *runOptions) following(ctx context.Context, proj *project.Project, ids []string) (string, error) {
	if len(o.tasks) > 0 || o.prompt != "" {
		return "", nil
	}
	tracker, err := proj.Tasks()
	if err != nil {
		return "", err
	}
	all, err := tracker.List(ctx)
	if err != nil {
		return "", err
	}
	n := len(task.Following(all, ids, o.app.Now()))
	if o.max > 0 {
		n = min(n, o.max-len(ids))
	}
	if n <= 0 {
		return "", nil
	}
	return fmt.Sprintf("; %d more as these land", n), nil
}
