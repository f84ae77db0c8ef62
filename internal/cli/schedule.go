package cli

import (
	"cmp"
	"context"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
)

// Scheduler returns a scheduler of the tasks in queue, which Watch shows. It runs atOnce tasks at once, or
// the configured number if atOnce is 0. On a terminal it asks about changes that are ready. The caller sets
// Work.
func (a *App) Scheduler(c *control.Controller, queue scheduler.Queue, atOnce int) *scheduler.Scheduler {
	s := &scheduler.Scheduler{
		Controller: c, Queue: queue, Width: cmp.Or(atOnce, c.Project.Config.Run.MaxTasks), Observer: a.observer(),
	}
	if a.Interactive && !a.shown.json {
		s.Ask = func(ctx context.Context, v session.View) (scheduler.Decision, error) { return a.Question(ctx, c, v) }
	}
	return s
}

// Revise asks for changes to the change of a task.
func (a *App) Revise(ctx context.Context, c *control.Controller, r control.ReviseRequest) error {
	return a.WorkOn(ctx, c, r.Task, func(ctx context.Context) (control.Outcome, error) { return c.Revise(ctx, r) })
}

// WorkOn works on a task. On a terminal it then asks about the change, as coven run does.
func (a *App) WorkOn(ctx context.Context, c *control.Controller, name string, work func(context.Context) (control.Outcome, error)) error {
	if !a.Interactive {
		return ExitStatus(work(ctx))
	}
	v, err := c.Project.Find(ctx, name)
	if err != nil {
		return err
	}
	s := a.Scheduler(c, scheduler.NewNamedQueue([]project.Item{{Task: task.Task{ID: v.Task}}}), 1)
	s.Work = func(ctx context.Context, _ project.Item) (control.Outcome, error) { return work(ctx) }
	return exit.Status(s.Run(ctx))
}

// observer returns an observer that prints the progress of a scheduler.
func (a *App) observer() scheduler.Observer {
	show := func(format string, args ...any) { _ = a.Showf(format, args...) } // nothing else can report the error
	return scheduler.Observer{
		Idle: func() { show("waiting for tasks (Ctrl-C ends it)\n") },
		Stopping: func() {
			show("stopping: no more tasks start, running tasks are parked (again: stop at once)\n")
		},
		Spent: func(text string) {
			show("%s: no more tasks start\n", text)
		},
		Collided: func(text string) { show("%s\n", terminal.Printable(text)) },
		Failed:   a.ShowError,
		Rejected: func(d control.Dismissal) { show("%s", RejectedText(d)) },
		Over: func(s scheduler.Summary) {
			switch {
			case s.Total() > 1:
				show("%d tasks: %s\n", s.Total(), s.Text())
			case s.Total() == 0 && !s.Interrupted && !s.Spent:
				show("nothing left to do: other covens are working on the tasks\n  next: coven status\n")
			}
			if s.Left > 0 {
				show("%d more not started\n", s.Left)
			}
		},
	}
}
