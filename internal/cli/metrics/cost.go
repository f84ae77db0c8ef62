package metrics

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/terminal"
)

type costOptions struct {
	app *cli.App

	by, since string
	asJSON    bool
}

// costJSON is the output of cost --json.
type costJSON struct {
	By      string            `json:"by"`
	Since   time.Time         `json:"since,omitzero"`
	Groups  []spending.Group  `json:"groups"`
	Total   spending.Sum      `json:"total"`
	Damaged []cli.DamagedJSON `json:"damaged"`
}

// NewCost returns the command coven cost.
func NewCost(a *cli.App) *cobra.Command {
	o := &costOptions{app: a}
	cmd := &cobra.Command{
		Use: "cost", Short: "Show what agents used, by task, agent, model or day", Args: cobra.NoArgs,
		Long: `Show what the agents of the recorded sessions used: those of steps, of reviewers and chats,
and subagents, each for itself. INPUT are the tokens that a model read, CACHED is the
share that came from its cache, and OUTPUT the tokens that it wrote. An agent's CLI
reports the cost when it ends; until then, and for CLIs that report none, coven
computes it from the prices in your settings. A usage counts on the day on which it was
reported, in local time.

Sessions whose records are damaged do not count and are named. Removed sessions do not count.
The task (backtest) is that of coven grimoires backtest.`,
		Example: `  coven cost
  coven cost --by day --since 7d
  coven cost --by model --json`,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			a.Mirror(cmd.Context(), p)
			return o.run(p)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.by, "by", "task", "group by this `KEY`: "+strings.Join(spending.Keys(), ", "))
	f.StringVar(&o.since, "since", "", "only usage in this `AGE` until now: 12h, 7d, 2w")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	cli.CompleteFlag(cmd, "by", cli.CompleteList(spending.Keys()...))
	return cmd
}

func (o *costOptions) run(p *project.Project) error {
	if !slices.Contains(spending.Keys(), o.by) {
		return exit.Usagef("coven cost --by day", "--by %q is none of %s", o.by, strings.Join(spending.Keys(), ", "))
	}
	since, err := o.app.Since(o.since, "coven cost --since 7d")
	if err != nil {
		return err
	}
	all, broken := p.Ledger.Since(since)
	damaged, err := o.app.ReportDamaged(broken)
	if err != nil {
		return err
	}
	found := costJSON{By: o.by, Since: since, Groups: spending.By(o.by, all), Total: spending.Of(all), Damaged: damaged}
	if o.asJSON {
		return o.app.PrintJSON(found)
	}
	if len(found.Groups) == 0 && o.since != "" {
		return o.app.Printf("no agent has used anything in the last %s\n", o.since)
	}
	if len(found.Groups) == 0 {
		return o.app.Printf("no agent has used anything\n")
	}
	rows := append(found.Groups, spending.Group{Key: "total", Sum: found.Total})
	return cli.PrintTable(o.app, strings.ToUpper(o.by)+"\tRUNS\tINPUT\tCACHED\tOUTPUT\tCOST", rows, costRow)
}

func costRow(g spending.Group) string {
	return fmt.Sprintf("%s\t%d\t%d\t%.0f%%\t%d\t$%.2f", terminal.Printable(g.Key), g.Runs, g.Input, 100*g.Cached, g.Output, g.CostUSD)
}
