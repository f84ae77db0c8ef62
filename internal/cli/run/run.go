// Package run implements coven run, which runs tasks, several at once.
package run

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

type runOptions struct {
	app *cli.App

	tasks       []string
	prompt      string
	edit        bool
	max         int
	width       int
	grimoire    string
	provider    string
	model       string
	onto        string
	base        string
	budget      string
	autoApprove bool
	yes         bool
	watch       bool
	dryRun      bool
	json        bool
	unsandboxed bool
	pull        bool
	remote      string
	on          string
}

// NewRun returns the command coven run.
func NewRun(a *cli.App) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run [TASK...]",
		Short: "Run tasks: each in its own worktree, checked, reviewed and landed",
		Long: `Run tasks, several at once (-j). Without TASK: first the tasks whose coven was killed,
then all ready tasks by priority, including those that become ready as others land.
With -p: run a prompt as a task, without a tracker. -p without a text opens your editor.

Each task gets its own worktree. When its agent is done and the checks pass, coven
asks for your approval and lands the change on the branch that is checked out, one
task at a time. Your uncommitted files are not touched.

Ctrl-C once: start nothing new and park running tasks; coven resume continues them.
Ctrl-C twice: stop at once.`,
		Example: `  coven run -p "add a --version flag"
  coven run bd-12
  coven run -j 8 --auto-approve
  coven run --watch`,
		ValidArgsFunction: a.CompleteTasks(cli.ForRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.tasks = args
			if cmd.Flags().Changed("jobs") && o.width < 1 {
				return noWidth(o.width)
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "run this `TEXT` as a task")
	f.BoolVar(&o.edit, "edit", false, "write the prompt in your editor, as -p without a text does")
	f.IntVarP(&o.max, "max", "n", 0, "run at most `N` tasks (default: all)")
	f.IntVarP(&o.width, "jobs", "j", 0, "run `N` tasks at once (default: the setting run.max_tasks, 3)")
	f.StringVar(&o.grimoire, "grimoire", "", "the `NAME` of the workflow to run; none: only the agent (default: the task's, else implement)")
	f.StringVar(&o.provider, "provider", "", "the `NAME` of the provider that drives the agents: "+strings.Join(project.BuiltinProviders(), ", ")+", a plugin, or MODEL-loop (default claude)")
	f.StringVar(&o.model, "model", "", "the `NAME` of the agents' model (default sonnet; others: their own)")
	f.BoolVar(&o.pull, "pr", false, "land with pull requests on the host of the repository")
	f.StringVar(&o.remote, "remote", "", "keep sessions on this git `REMOTE`, where other machines can continue them (default: the setting run.remote)")
	f.StringVar(&o.on, "on", "", "let the workers on the server `HOST:PORT` run the tasks (default: the setting run.on)")
	f.StringVar(&o.onto, "onto", "", "the `BRANCH` to land on (default: the one checked out)")
	f.StringVar(&o.base, "base", "", "the `REF` to start from (default: the target's tip)")
	f.StringVar(&o.budget, "budget", "", "`KEY=AMOUNT` for all tasks together: usd, tokens, turns, wall (default: the setting run.budget)")
	f.BoolVar(&o.autoApprove, "auto-approve", false, "land without asking, once the checks pass")
	f.BoolVar(&o.yes, "yes", false, "do not ask before running many tasks")
	f.BoolVar(&o.watch, "watch", false, "wait for more tasks when none is ready")
	f.BoolVar(&o.dryRun, "dry-run", false, "list what would run, in order")
	f.BoolVar(&o.json, "json", false, "print events as JSON lines")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.Once(cmd, "prompt", "budget")
	cli.CompleteFlag(cmd, "grimoire", a.CompleteWords(cli.GrimoireNames))
	cli.CompleteFlag(cmd, "model", cli.CompleteList("sonnet", "haiku", "opus"))
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	cli.CompleteFlag(cmd, "onto", a.CompleteWords(cli.Branches))
	cli.CompleteFlag(cmd, "base", a.CompleteWords(cli.Branches))
	return cmd
}

func (o *runOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.app.Open(ctx)
	if err != nil {
		return err
	}
	o.remote, o.on = cmp.Or(o.remote, p.Config.Run.Remote), cmp.Or(o.on, p.Config.Run.On)
	if o.on != "" && o.remote == "" {
		return exit.Usagef("coven run --help", "--on needs --remote: the workers get the sessions from a git remote")
	}
	branch, err := control.TargetBranch(ctx, p, o.onto)
	if err != nil {
		return err
	}
	if err := control.CheckOptions(ctx, p, o.options(branch)); err != nil {
		return err // reported once, not for each task
	}
	limit, err := o.limit(p)
	if err != nil {
		return err
	}
	if !o.edit {
		return o.start(ctx, p, branch, limit)
	}
	d := cli.Draft{Text: o.prompt, Help: "Describe the task for the agent.", Instead: `coven run -p "..."`}
	return o.app.EditText(ctx, p, d, func(text string) error {
		o.prompt = text
		return o.start(ctx, p, branch, limit)
	})
}

// start runs the tasks that the command line names, or those that are ready.
func (o *runOptions) start(ctx context.Context, p *project.Project, branch string, limit budget.Amount) error {
	p.Config.Run.On = o.on
	from, todo, err := o.choose(ctx, p)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.list(ctx, p, todo, branch)
	}
	if len(todo) == 0 && !o.watch && o.json {
		return nil
	}
	if len(todo) == 0 && !o.watch {
		return o.app.Printf("no task is ready\n  next: %s\n", idle(p))
	}
	if err := o.noteEarlier(p, todo); err != nil {
		return err
	}
	if o.remote != "" {
		if err := o.app.KeepOn(ctx, p, o.remote, o.yes, "coven run --yes --remote "+shellword.Word(o.remote)); err != nil {
			return err
		}
	}
	if ok, err := o.consent(ctx, p, todo, limit); err != nil || !ok {
		return err
	}
	c, err := o.app.ControllerOf(p)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Fleet != nil {
		if err := c.Fleet.Check(ctx); err != nil {
			return err // before a session begins
		}
	}
	c.Approver, c.Budget = o.approver(), budget.New(limit)
	return o.work(ctx, c, from, todo, branch)
}

// noteEarlier says that a prompt has been a task before, because the person may have meant that one.
func (o *runOptions) noteEarlier(p *project.Project, todo []project.Item) error {
	if len(todo) != 1 || todo[0].Earlier == "" || o.json {
		return nil
	}
	v, err := p.Finder.OfTask(todo[0].Earlier)
	if err != nil {
		return nil //nolint:nilerr // it is only advice
	}
	id := terminal.Printable(shellword.Word(v.Task))
	next := cmp.Or(terminal.Printable(control.NextOf(v)), "coven diff "+id)
	return o.app.Printf("%s has the same title and is %s: %s; this is a new task, %s\n", id, control.StateOf(v), next, terminal.Printable(todo[0].Task.ID))
}

// limit returns the budget of all tasks of this run together.
func (o *runOptions) limit(p *project.Project) (budget.Amount, error) {
	if o.budget == "" {
		return p.Config.Run.Budget, nil
	}
	limit, err := budget.Parse(o.budget)
	if err != nil {
		return limit, exit.Usagef("coven run --budget usd=5", "--budget: %w", err)
	}
	return limit, nil
}

// work runs the tasks and shows them.
func (o *runOptions) work(ctx context.Context, c *control.Controller, from scheduler.Queue, todo []project.Item, branch string) error {
	briefing := func() ([]string, error) { return nil, nil }
	if !o.json {
		briefing = o.brief(ctx, c, branch)
	}
	if err := c.AllowsProvider(ctx, cmp.Or(o.provider, c.Project.Config.Provider)); err != nil {
		return err // reported once, not for each task
	}
	if o.unsandboxed {
		if err := c.AcceptUnsandboxed(); err != nil {
			return err
		}
	}
	draw := terminal.TaskLines
	if _, named := from.(*scheduler.NamedQueue); len(todo) == 1 && (named || o.max == 1) {
		draw = terminal.Lines // there is no other task
	}
	defer o.app.Watch(c, o.json, draw)()
	if err := c.Preflight(ctx, todo, o.options(branch)); err != nil {
		return err // reported once, not for each task
	}
	lines, err := briefing()
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := o.app.Showf("%s\n", terminal.Printable(line)); err != nil {
			return err
		}
	}
	options := o.options(branch)
	s := o.app.Scheduler(c, from, o.width)
	if s.Max, s.Watch = o.max, o.watch; o.watch {
		c.WaitForAccounts()
	}
	if ready, ok := from.(*scheduler.ReadyQueue); ok {
		ready.Pulls = c.ChangedPulls
	}
	s.Work = func(ctx context.Context, item project.Item) (control.Outcome, error) {
		return c.Run(ctx, item, options)
	}
	return exit.Status(s.Run(ctx))
}

// brief returns the lines to show before the tasks run. It looks while other work goes on.
func (o *runOptions) brief(ctx context.Context, c *control.Controller, branch string) func() ([]string, error) {
	onto := branch
	if o.pull || c.Project.Config.Landing.Strategy == grimoires.PullRequest {
		onto += " with pull requests"
	}
	if o.remote != "" {
		onto += " of " + o.remote + ", which keeps the sessions"
	}
	first, briefing := newHere(c.Project), c.Brief(ctx, onto)
	return func() ([]string, error) {
		lines, err := briefing()
		if err != nil {
			return nil, err
		}
		warning, err := committer(ctx, c.Project)
		for _, line := range []string{warning, first} {
			if line != "" {
				lines = append(lines, line)
			}
		}
		return lines, err
	}
}

// options returns the options of sessions that land on a branch.
func (o *runOptions) options(branch string) control.Options {
	return control.Options{Grimoire: o.grimoire, Provider: o.provider, Model: o.model, Onto: branch, Base: o.base, Pull: o.pull, Remote: o.remote}
}

func noWidth(n int) error {
	return exit.Usagef("coven run -j 3", "-j %d is not between 1 and %d", n, config.MaxTasks)
}

func (o *runOptions) check() error {
	switch {
	case (o.prompt != "" || o.edit) && len(o.tasks) > 0:
		return exit.Usagef("coven run --help", "give tasks or -p, not both")
	case o.watch && (o.prompt != "" || o.edit || len(o.tasks) > 0):
		return exit.Usagef("coven run --watch", "--watch runs what is ready: give no tasks and no -p")
	case o.width > config.MaxTasks:
		return noWidth(o.width)
	case o.max < 0:
		return exit.Usagef("coven run -n 5", "-n %d is less than 0", o.max)
	}
	return nil
}

// approver returns the recorded approver if no person is asked.
func (o *runOptions) approver() string {
	if o.autoApprove {
		return "--auto-approve"
	}
	return ""
}

// choose returns the queue of tasks, and the tasks that could run now.
func (o *runOptions) choose(ctx context.Context, p *project.Project) (scheduler.Queue, []project.Item, error) {
	if o.prompt != "" || len(o.tasks) > 0 {
		jobs, err := o.given(ctx, p)
		return scheduler.NewNamedQueue(jobs), jobs, err
	}
	if _, err := p.Tasks(); err != nil {
		return nil, nil, err
	}
	ready := scheduler.NewReadyQueue(p, o.watch)
	ready.Options = o.options("")
	jobs, err := ready.Next(ctx, nil)
	if o.max > 0 {
		jobs = jobs[:min(o.max, len(jobs))]
	}
	return ready, jobs, err
}

// given returns the tasks named on the command line.
func (o *runOptions) given(ctx context.Context, p *project.Project) ([]project.Item, error) {
	if o.prompt != "" {
		item, err := p.AdHoc(ctx, o.prompt)
		if err != nil {
			return nil, err
		}
		return []project.Item{item}, nil
	}
	return p.Named(ctx, o.tasks)
}
