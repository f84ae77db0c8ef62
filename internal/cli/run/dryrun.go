package run

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// list prints the tasks that would run.
func (o *runOptions) list(proj *project.Project, todo []project.Item, branch string) error {
	code, tasks := exit.OK, []project.Planned{}
	for _, item := range todo {
		p, err := proj.WouldRun(item, o.grimoire)
		if err != nil {
			return err
		}
		if p.Problem != "" {
			code = exit.Usage
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
	if err := o.app.Printf("%s would run, landing on %s\n", oneline.Count(len(todo), "task"), terminal.Printable(branch)); err != nil {
		return err
	}
	return exit.Status(code)
}
