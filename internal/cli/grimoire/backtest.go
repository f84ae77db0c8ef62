package grimoire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/backtest"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// maxPrompt limits the file of --prompt, in bytes.
const maxPrompt = 1 << 20

// backtestExample is the next command for wrong flags.
const backtestExample = "coven grimoires backtest --help"

type backtestOptions struct {
	app *cli.App

	on, prompts, reviewers []string
	newest, width          int
	provider, model, agent string
	budget, step           string
	dryRun, json, verbose  bool
	unsandboxed            bool
}

func newGrimoiresBacktest(a *cli.App) *cobra.Command {
	o := &backtestOptions{app: a}
	cmd := &cobra.Command{
		Use: "backtest NAME...", Short: "Run recorded tasks again with other workflows, and compare the results",
		Long: `Run the tasks of recorded sessions again with the present workflows NAME, or with another
prompt, model, reviewer or agent, and compare the results with the recorded ones.

With --step, only one step of the workflow runs, in the files and with the results of
earlier steps from which it began in the recorded session. Then its change must pass the
checks of that session; COST and TIME are those of the step.

Each run has a repository of its own in the directory for temporary files. It starts at the
commit that the recorded session started from, and its change must pass the checks of
that session. Nothing lands in your repository: no branch, worktree, claim, task or session
of it changes. No person is asked: coven denies the calls that a person would have to
approve, and merge steps do not wait for a person's review.

FIRST TRY counts the tasks that landed without a failed check, another round of a review,
or a person's request. COST and TIME are medians; TIME is without waiting. The ranges are
95% intervals, and are missing for less than 6 runs. BETTER and WORSE count the tasks that
landed at the first try only with this workflow, or only in the recorded session. SAME counts the changes that
equal the recorded ones, and SAME FILES those that touch the same files.`,
		Example: `  coven grimoires backtest implement careful --budget usd=20
  coven grimoires backtest implement --prompt implement=shorter.md --budget usd=10 -n 10
  coven grimoires backtest implement --step fix --prompt fix-tests=new.md --budget usd=5
  coven grimoires backtest implement --model haiku --on bd-12 --on bd-15 --budget usd=5`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteWords(cli.GrimoireNames),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.on, "on", []string{backtest.OnLanded}, "run the task of these `SESSIONS` again: landed, ended, a task or a session; repeatable")
	f.IntVarP(&o.newest, "newest", "n", 20, "at most the newest `N` sessions of --on landed or ended")
	f.IntVarP(&o.width, "jobs", "j", 0, "run `N` tasks at once (default: the setting run.max_tasks, 3)")
	f.StringVar(&o.step, "step", "", "run only the step with this `NAME` again, and then the checks")
	f.StringVar(&o.provider, "provider", "", "the `NAME` of the provider that drives the agents (default: the configured one)")
	f.StringVar(&o.model, "model", "", "the `NAME` of the agents' model (default: the configured one)")
	f.StringVar(&o.agent, "agent", "", "the `NAME` of the agent of all agent steps (default: those of the workflow)")
	f.StringArrayVar(&o.reviewers, "reviewer", nil, "the `NAME` of a reviewer of all review steps, instead of those of the workflow; repeatable")
	f.StringArrayVar(&o.prompts, "prompt", nil, "`NAME=FILE`: the text of a prompt; repeatable")
	f.StringVar(&o.budget, "budget", "", "`KEY=AMOUNT` for all runs together: usd, tokens, turns, wall (default: the setting run.budget)")
	f.BoolVar(&o.dryRun, "dry-run", false, "list the sessions, and the most that the runs can cost")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "list each run")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.Once(cmd, "budget")
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	cli.CompleteFlag(cmd, "on", cli.CompleteList(backtest.OnLanded, backtest.OnEnded))
	return cmd
}

func (o *backtestOptions) run(ctx context.Context, names []string) error {
	if o.newest < 1 {
		return exit.Usagef(backtestExample, "-n %d is less than 1", o.newest)
	}
	if o.width < 0 || o.width > config.MaxTasks {
		return exit.Usagef(backtestExample, "-j %d is not between 1 and %d", o.width, config.MaxTasks)
	}
	return o.app.WithController(ctx, func(c *control.Controller) error {
		r, err := o.request(ctx, c, names)
		if err != nil {
			return err
		}
		if o.dryRun {
			return o.list(r)
		}
		if o.unsandboxed {
			if err := c.AcceptUnsandboxed(); err != nil {
				return err
			}
		}
		report, err := backtest.Run(ctx, c, r, o.show)
		if err != nil {
			return err
		}
		if err := o.print(report); err != nil {
			return err
		}
		return o.status(ctx, c.Project, r, report)
	})
}

// request returns the runs that the command line asks for.
func (o *backtestOptions) request(ctx context.Context, c *control.Controller, names []string) (r backtest.Request, err error) {
	p := c.Project
	for _, name := range names {
		if !slices.Contains(r.Grimoires, name) {
			r.Grimoires = append(r.Grimoires, name)
		}
	}
	r.Provider, r.Model, r.Width, r.Budget = o.provider, o.model, o.width, p.Config.Run.Budget
	r.Step, r.Agent, r.Reviewers, r.Prompts = o.step, o.agent, o.reviewers, map[string]string{}
	if r.Width == 0 {
		r.Width = p.Config.Run.MaxTasks
	}
	if o.budget != "" {
		if r.Budget, err = budget.Parse(o.budget); err != nil {
			return r, exit.Usagef(backtestExample, "--budget: %w", err)
		}
	}
	if r.Budget == (budget.Amount{}) {
		return r, exit.Usagef("coven grimoires backtest "+strings.Join(names, " ")+" --budget usd=5", "nothing limits the cost: give --budget")
	}
	for _, text := range o.prompts {
		name, file, ok := strings.Cut(text, "=")
		if !ok || name == "" || file == "" {
			return r, exit.Usagef(backtestExample, "--prompt %q is not NAME=FILE", text)
		}
		path, err := o.app.Absolute(file)
		if err != nil {
			return r, err
		}
		data, err := regularfile.Read(path, maxPrompt)
		if err != nil {
			return r, exit.Usagef(backtestExample, "--prompt %s: %w", name, err)
		}
		r.Prompts[name] = string(data)
	}
	if err := backtest.Check(p, r); err != nil {
		return r, err
	}
	if r.Cases, err = backtest.Select(ctx, p, o.on, o.newest, o.step); err != nil {
		return r, err
	}
	if len(r.Cases) == 0 {
		return r, exit.Usagef("coven sessions list", "no recorded session with checks can run again")
	}
	return r, control.CheckOptions(ctx, p, control.Options{Grimoire: r.Grimoires[0], Provider: r.Provider, Model: r.Model})
}

// list prints the sessions that would run.
func (o *backtestOptions) list(r backtest.Request) error {
	sessions, recorded := []string{}, 0.0
	for _, c := range r.Cases {
		sessions, recorded = append(sessions, c.View.ID), recorded+c.View.Used.USD
	}
	if o.json {
		return o.app.PrintJSON(map[string]any{"sessions": sessions, "grimoires": r.Grimoires, "recorded_usd": recorded, "budget": r.Budget})
	}
	err := cli.PrintTable(o.app, "SESSION\tTASK\tWORKFLOW\tCOST", r.Cases, func(c backtest.Case) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s", terminal.Printable(c.View.ID), terminal.Printable(c.View.Task), terminal.Printable(c.View.Info.Grimoire), budget.Amount{USD: c.View.Used.USD})
	})
	if err != nil {
		return err
	}
	return o.app.Printf("%s of %s would run again, %d at once, until they have used %s; they cost %s when they were recorded\n",
		oneline.Count(len(r.Cases), "session"), oneline.Count(len(r.Grimoires), "workflow"), r.Width, r.Budget, dollars(recorded))
}

// show prints the result of a run while others go on.
func (o *backtestOptions) show(r backtest.Result) {
	if o.json || !o.verbose {
		return
	}
	_ = o.app.Printf("%s\n", strings.Join(runCells(r), "  ")) // at once, before the table; the report has it, too
}

// runCells describes a run.
func runCells(r backtest.Result) []string {
	text := r.Status
	if r.FirstTry {
		text += " at the first try"
	}
	cells := []string{terminal.Printable(r.Task), terminal.Printable(r.Grimoire), text, dollars(r.USD), seconds(r.Time.Seconds())}
	switch {
	case r.Change != nil && r.Change.Same:
		cells = append(cells, "the recorded change")
	case r.Change != nil:
		cells = append(cells, fmt.Sprintf("%s, %d of them among the %d of the recorded change", oneline.Count(r.Change.Files, "file"), r.Change.Common, r.Change.Recorded))
	case r.Detail != "":
		cells = append(cells, terminal.Clip(terminal.Printable(oneline.Of(r.Detail)), 100))
	}
	return cells
}

// print prints a report.
func (o *backtestOptions) print(r backtest.Report) error {
	if o.json {
		return o.app.PrintJSON(r)
	}
	rows := append([]backtest.Row{r.Recorded}, r.Rows...)
	return cli.PrintTable(o.app, "WORKFLOW\tRUNS\tLANDED\tFIRST TRY\tCOST\tTIME\tBETTER\tWORSE\tSAME\tSAME FILES", rows, func(row backtest.Row) string {
		name, compared := terminal.Printable(row.Grimoire), fmt.Sprintf("%d\t%d\t%d\t%d", row.Better, row.Worse, row.Same, row.SameFiles)
		if row.Grimoire == "" {
			name, compared = "(recorded)", "\t\t\t"
		}
		return strings.Join([]string{
			name, fmt.Sprint(row.Runs), fmt.Sprint(row.Landed), fmt.Sprintf("%d %s", row.FirstTry, estimate(row.Rate, percent)),
			estimate(row.USD, dollars), estimate(row.Seconds, seconds), compared,
		}, "\t")
	})
}

// status returns the exit code: an error if a run is unfinished.
func (o *backtestOptions) status(ctx context.Context, p *project.Project, r backtest.Request, report backtest.Report) error {
	unfinished, why := 0, ""
	for _, one := range report.Results {
		if one.Status == backtest.Unfinished {
			unfinished++
			if why == "" && one.Detail != backtest.NotStarted {
				why = ": " + oneline.Of(one.Detail)
			}
		}
	}
	switch {
	case unfinished == 0:
		return nil
	case ctx.Err() != nil:
		return exit.Status(exit.Interrupted)
	case report.Today != "":
		return &exit.Error{Exit: exit.Budget, Err: fmt.Errorf("%s: %s did not finish", report.Today, oneline.Count(unfinished, "run")), Next: p.RaiseToday(ctx)}
	case report.Spent != "":
		return &exit.Error{Exit: exit.Budget, Err: fmt.Errorf("the budget is spent (%s): %s did not finish", report.Spent, oneline.Count(unfinished, "run")), Next: "coven grimoires backtest " + strings.Join(r.Grimoires, " ") + " --budget usd=20"}
	}
	return exit.Failedf("coven doctor", "%s did not finish%s", oneline.Count(unfinished, "run"), why)
}

// estimate returns a value with its interval.
func estimate(e backtest.Estimate, text func(float64) string) string {
	if e.Interval == nil {
		return text(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", text(e.Value), text(e.Interval[0]), text(e.Interval[1]))
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
