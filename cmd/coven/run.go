package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

type runOptions struct {
	app *app

	tasks       []string
	prompt      string
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
}

func newRun(a *app) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run [TASK...]",
		Short: "Run tasks: each in its own worktree, checked, reviewed and landed",
		Long: `Run tasks, several at once (-j). Without TASK: first those whose coven was
killed, then all that are ready, the most urgent first, also those that become
ready as others land. With -p: a task of your own words, which needs no tracker.

An agent works in a worktree of its own. When it is done and the checks pass,
coven asks for your approval and lands the change on the branch that you have
checked out, one task after the other. Uncommitted files of yours stay as they
are.

Ctrl-C once: start nothing new, park what is at work; coven resume goes on.
Ctrl-C twice: stop at once.`,
		Example: `  coven run -p "add a --version flag"
  coven run bd-12
  coven run -j 8 --auto-approve
  coven run --watch`,
		ValidArgsFunction: a.completeTasks(forRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.tasks = args
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "run this `TEXT` as a task")
	f.IntVarP(&o.max, "max", "n", 0, "run at most `N` tasks (0: all)")
	f.IntVarP(&o.width, "jobs", "j", 0, "run `N` tasks at once (default: run.max_tasks of the configuration, 3)")
	f.StringVar(&o.grimoire, "grimoire", "", "the workflow to run; none: just the agent")
	f.StringVar(&o.provider, "provider", "", "who drives the agents: "+strings.Join(builtinProviders(), ", ")+" or a plugin (default claude)")
	f.StringVar(&o.model, "model", "", "the model of the agents (default sonnet; codex and qwen: their own)")
	f.StringVar(&o.onto, "onto", "", "the `BRANCH` to land on (default: the one checked out)")
	f.StringVar(&o.base, "base", "", "the `REF` to start from (default: the target's tip)")
	f.StringVar(&o.budget, "budget", "", "`KEY=AMOUNT` for all tasks together: usd, tokens, turns, wall (default: run.budget of the configuration)")
	f.BoolVar(&o.autoApprove, "auto-approve", false, "land without asking, once the checks pass")
	f.BoolVar(&o.yes, "yes", false, "do not ask before many tasks are run")
	f.BoolVar(&o.watch, "watch", false, "when no task is ready, wait for more instead of ending")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be run, in which order, and stop")
	f.BoolVar(&o.json, "json", false, "print events as JSON lines")
	completeFlag(cmd, "grimoire", a.completeWords(grimoireNames))
	completeFlag(cmd, "model", completeList("sonnet", "haiku", "opus"))
	completeFlag(cmd, "provider", a.completeWords(providerNames))
	completeFlag(cmd, "onto", a.completeWords(branches))
	completeFlag(cmd, "base", a.completeWords(branches))
	return cmd
}

// manyTasks is how many tasks are run without asking first.
const manyTasks = 5

func (o *runOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	h, err := o.app.open(ctx)
	if err != nil {
		return err
	}
	target, err := h.repo.Target(ctx, o.onto)
	if err != nil {
		return err
	}
	if err := h.chooses(o.grimoire); err != nil {
		return err // once, and not for each task
	}
	from, todo, err := o.choose(ctx, h)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.list(h, todo, target)
	}
	if len(todo) == 0 && !o.watch && o.json {
		return nil
	}
	if len(todo) == 0 && !o.watch {
		return o.app.say("no task is ready\n  next: coven task add TITLE, or coven run -p \"...\"\n")
	}
	limit, err := o.limit(h)
	if err != nil {
		return err
	}
	if ok, err := o.consent(ctx, h, todo, limit); err != nil || !ok {
		return err
	}
	d, err := h.startDesk()
	if err != nil {
		return err
	}
	defer d.close()
	d.approve, d.purse = o.approver(), budget.New(limit)
	return o.work(ctx, d, from, len(todo), target)
}

// limit is the budget of all tasks of this run together.
func (o *runOptions) limit(h *house) (budget.Amount, error) {
	if o.budget == "" {
		return h.config.Run.Budget, nil
	}
	limit, err := budget.Parse(o.budget)
	if err != nil {
		return limit, exit.Usagef("coven run --budget usd=5", "--budget: %w", err)
	}
	return limit, nil
}

// work runs the tasks and shows them.
func (o *runOptions) work(ctx context.Context, d *desk, from pool, count int, target worktree.Target) error {
	if err := d.allows(ctx, cmp.Or(o.provider, d.house.config.Provider)); err != nil {
		return err // once, and not for each task
	}
	draw := terminal.TaskLines
	if _, named := from.(*namedPool); count == 1 && (named || o.max == 1) {
		draw = terminal.Lines // there will not be another task
	}
	defer o.app.watch(d, o.json, draw)()
	if err := o.app.preface(ctx, d, target); err != nil {
		return err
	}
	s := &shift{
		desk: d, pool: from, width: cmp.Or(o.width, d.house.config.Run.MaxTasks), max: o.max, watch: o.watch,
		onto: target.Branch, observer: o.app.shiftObserver(),
		choices: choices{grimoire: o.grimoire, provider: o.provider, model: o.model, base: o.base},
	}
	if o.app.interactive && !o.json {
		s.ask = func(ctx context.Context, v session.View) (decision, error) { return o.app.question(ctx, d, v) }
	}
	return exit.Status(s.run(ctx))
}

func (o *runOptions) check() error {
	switch {
	case o.prompt != "" && len(o.tasks) > 0:
		return exit.Usagef("", "give tasks or -p, not both")
	case o.watch && (o.prompt != "" || len(o.tasks) > 0):
		return exit.Usagef("coven run --watch", "--watch runs what is ready: give no tasks and no -p")
	case o.width < 0 || o.width > config.MaxTasks:
		return exit.Usagef("coven run -j 3", "-j %d is not between 1 and %d", o.width, config.MaxTasks)
	case o.max < 0:
		return exit.Usagef("coven run -n 5", "-n %d is less than 0", o.max)
	}
	return nil
}

// approver is who the record says has approved, when nobody is asked.
func (o *runOptions) approver() string {
	if o.autoApprove {
		return "--auto-approve"
	}
	return ""
}

// choose returns where the tasks come from, and those that could be run now.
func (o *runOptions) choose(ctx context.Context, h *house) (pool, []job, error) {
	if o.prompt != "" || len(o.tasks) > 0 {
		jobs, err := o.given(ctx, h)
		return newNamedPool(jobs), jobs, err
	}
	if _, err := h.tasks(); err != nil {
		return nil, nil, err
	}
	ready := newReadyPool(h, o.watch)
	jobs, err := ready.Next(ctx, nil)
	if o.max > 0 {
		jobs = jobs[:min(o.max, len(jobs))]
	}
	return ready, jobs, err
}

// given are the tasks that the command line gives.
func (o *runOptions) given(ctx context.Context, h *house) ([]job, error) {
	if o.prompt != "" {
		j, err := h.adHoc(ctx, o.prompt)
		if err != nil {
			return nil, err
		}
		return []job{j}, nil
	}
	return h.named(ctx, o.tasks)
}

// shiftObserver tells how a shift goes.
func (a *app) shiftObserver() shiftObserver {
	tell := func(format string, args ...any) { _ = a.tell(format, args...) } // there is nobody else to tell
	return shiftObserver{
		idle: func() { tell("waiting for tasks (Ctrl-C ends it)\n") },
		stopping: func() {
			tell("stopping: no task is started any more, those at work are parked (again: stop at once)\n")
		},
		spent: func(text string) {
			tell("the budget of this coven run is spent: %s: no task is started any more\n", text)
		},
		failed:   a.explainBetween,
		rejected: func(v session.View, ended event.Ended) { tell("%s", rejectedText(v, ended)) },
		over: func(s summary) {
			switch {
			case s.total() > 1:
				tell("%d tasks: %s\n", s.total(), s.text())
			case s.total() == 0 && !s.interrupted:
				tell("nothing was left to do: other covens have the tasks\n  next: coven status\n")
			}
			if s.left > 0 {
				tell("%d more not started\n", s.left)
			}
		},
	}
}

// preface says what the user should know before agents work.
func (a *app) preface(ctx context.Context, d *desk, target worktree.Target) error {
	lines := []string{"shell commands are not fenced yet: an agent's Bash can reach what you can"}
	uncommitted, err := d.house.repo.Uncommitted(ctx)
	if err != nil {
		return err
	}
	if len(uncommitted) > 0 {
		lines = append(lines, "uncommitted files that agents will not see: "+nameSome(uncommitted))
	}
	if d.runtime.warning != "" {
		lines = append(lines, d.runtime.warning)
	}
	checks, found := d.house.checks()
	switch {
	case len(checks) == 0:
		lines = append(lines, "NO CHECKS: nothing says how to test this repository, so nothing is tested before it lands (set checks in .coven/config.yaml)")
	case len(found) > 0:
		lines = append(lines, "checks found: "+strings.Join(found, ", "))
	}
	lines = append(lines, "landing on "+target.Branch)
	for _, line := range lines {
		if err := a.tell("%s\n", terminal.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// nameSome names the first few of a list.
func nameSome(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}
