// Package resume holds the commands that continue or end a session: resume, retry and cancel.
package resume

import (
	"cmp"
	"context"
	"errors"
	"net"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

type resumeOptions struct {
	app *cli.App

	tasks  []string
	budget string
	atOnce int

	remote   string
	on       string
	takeOver bool
	yes      bool

	worker bool

	to control.Switch

	unsandboxed bool
}

// NewResume returns the command coven resume.
func NewResume(a *cli.App) *cobra.Command {
	o := &resumeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "resume [TASK...]",
		Short: "Resume sessions that were interrupted, limited or blocked",
		Long: `Resume the sessions of tasks, several at once (-j). Completed steps do not run again,
an interrupted agent continues its conversation, and a step that blocked the task
runs again. Without TASK: resume every session that was interrupted, reached a rate
limit, or waited for the checkout. With --on or run.on, it also hands all sessions of run.remote
that need no answer to the workers again, for example after the server has lost its
state. On a terminal, coven asks about each change that
becomes ready, as coven run does.

--budget adds to the budgets in effect where each task waits: usd, tokens, turns and
wall (a duration), separated by commas.

With --provider, the agents that the session's provider ran continue with another one, for
example while the account of the first is limited: in new conversations, which are told
about the earlier work. It stays the provider of the task.`,
		Example: `  coven resume
  coven resume -j 1
  coven resume bd-12 --provider codex
  coven resume bd-12 --budget usd=+5,turns=+50`,
		ValidArgsFunction: a.CompleteTasks(cli.Resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.tasks = args; cmd.Flags().Changed("jobs") && (o.atOnce < 1 || o.atOnce > config.MaxTasks) {
				return exit.Usagef("coven resume -j 3", "-j %d is not between 1 and %d", o.atOnce, config.MaxTasks)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.budget, "budget", "", "add `KEY=+AMOUNT` to the budget: usd, tokens, turns, wall")
	cmd.Flags().IntVarP(&o.atOnce, "jobs", "j", 0, "resume `N` tasks at once (default: the setting run.max_tasks, 3)")
	cmd.Flags().StringVar(&o.remote, "remote", "", "bring the session here that this git `REMOTE` keeps, if another machine has continued it")
	cmd.Flags().StringVar(&o.on, "on", "", "let the workers on the server `HOST:PORT` run the sessions that a remote keeps (default: the setting run.on)")
	cmd.Flags().BoolVar(&o.takeOver, "take-over", false, "with --remote: also if another machine seems to run the session, because that machine is gone")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --remote: do not ask whether the remote may keep sessions")
	cmd.Flags().BoolVar(&o.worker, "worker", false, "with --remote, for coven-worker: take the session over in any case, leave the tracker alone, and print the state as JSON")
	switchFlags(a, cmd, &o.to)
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.Once(cmd, "budget", "jobs")
	return cmd
}

func (o *resumeOptions) run(ctx context.Context) error {
	more, err := moreBudget(o.budget)
	if err != nil {
		return err
	}
	c, err := o.controller(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.unsandboxed {
		if err := c.AcceptUnsandboxed(); err != nil {
			return err
		}
	}
	if err := c.CheckSwitch(ctx, o.to); err != nil {
		return err
	}
	if o.worker {
		return o.forWorker(ctx, c)
	}
	if err := o.bring(ctx, c); err != nil {
		return err
	}
	todo, err := c.ToResume(ctx, o.tasks, more)
	if err != nil {
		return err
	}
	o.app.PrintDamaged(todo.Damaged)
	if todo.Host != nil {
		if err := o.app.Printf("pull requests: %s\n  next: %s\n", terminal.Printable(todo.Host.Error()), terminal.Printable(exit.Next(todo.Host))); err != nil {
			return err
		}
	}
	code := exit.OK
	if len(todo.Requests) > 0 {
		code = o.work(ctx, c, todo.Requests)
	}
	if poor := len(todo.OverBudget); poor > 0 {
		err := o.app.Printf("sessions that have spent their budget: %d\n  next: coven resume --budget usd=+5\n", poor)
		return errors.Join(err, exit.Status(exit.Worse(code, exit.Budget)))
	}
	if n := len(todo.Unchanged); n > 0 && len(todo.Requests) == 0 {
		return o.app.Printf("nothing to resume: %s did not change\n  next: coven status\n", oneline.Count(n, "pull request"))
	}
	if len(todo.Requests) == 0 {
		return o.app.Printf("nothing to resume\n  next: coven status\n")
	}
	return exit.Status(code)
}

// controller returns the Controller, whose sessions the workers of --on run.
func (o *resumeOptions) controller(ctx context.Context) (*control.Controller, error) {
	if _, _, err := net.SplitHostPort(o.on); o.on != "" && err != nil {
		return nil, exit.Usagef("coven resume --on 127.0.0.1:7233", "--on: %q is not HOST:PORT", o.on)
	}
	p, err := o.app.Open(ctx)
	if err != nil {
		return nil, err
	}
	p.Config.Run.On = cmp.Or(o.on, p.Config.Run.On)
	return o.app.ControllerOf(p)
}

// bring brings the sessions of the tasks here that a remote keeps.
func (o *resumeOptions) bring(ctx context.Context, c *control.Controller) error {
	switch {
	case o.remote == "" && (o.takeOver || o.yes):
		return exit.Usagef("coven help resume", "--take-over and --yes need --remote")
	case o.remote == "":
		return nil
	case len(o.tasks) == 0:
		return exit.Usagef("coven resume TASK --remote "+shellword.Word(o.remote), "--remote needs the names of tasks")
	}
	next := "coven resume " + shellword.Word(o.tasks[0]) + " --yes --remote " + shellword.Word(o.remote)
	if err := o.app.KeepOn(ctx, c.Project, o.remote, o.yes, next); err != nil {
		return err
	}
	return c.Bring(ctx, o.remote, o.tasks, o.takeOver)
}

// work resumes sessions and shows them. It returns the exit code.
func (o *resumeOptions) work(ctx context.Context, c *control.Controller, requests []control.ResumeRequest) int {
	draw := terminal.TaskLines
	if len(requests) == 1 {
		draw = terminal.Lines // there is no other task
	}
	defer o.app.Watch(c, false, draw)()
	c.Budget = budget.New(c.Project.Config.Run.Budget)
	items, byTask := make([]project.Item, len(requests)), map[string]control.ResumeRequest{}
	for i, r := range requests {
		r.Switch = o.to
		items[i].Task.ID, byTask[r.Task] = r.Task, r
	}
	if c.Fleet != nil && o.atOnce == 0 { // the workers have limits of their own
		o.atOnce = min(len(requests), config.MaxTasks)
	}
	s := o.app.Scheduler(c, scheduler.NewNamedQueue(items), o.atOnce)
	s.Work = func(ctx context.Context, item project.Item) (control.Outcome, error) {
		done, err := c.Resume(ctx, byTask[item.Task.ID])
		if len(o.tasks) == 0 && errors.As(err, new(*project.NoSessionError)) { // it was there when they were listed
			return done, scheduler.ErrOver
		}
		return done, err
	}
	return s.Run(ctx)
}

// moreBudget parses the value of --budget.
func moreBudget(text string) (budget.Amount, error) {
	if text == "" {
		return budget.Amount{}, nil
	}
	more, err := budget.ParseMore(text)
	if err != nil {
		return more, exit.Usagef("coven resume TASK --budget usd=+5", "--budget: %w", err)
	}
	return more, nil
}
