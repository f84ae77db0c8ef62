// Package metrics holds the commands that show numbers from the records of sessions: cost and metrics.
package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/metrics"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

type options struct {
	app *cli.App

	agent, since string
	asJSON       bool
}

// metricsJSON is the output of metrics --json.
type metricsJSON struct {
	Since    time.Time         `json:"since,omitzero"`
	Sessions int               `json:"sessions"` // with counted runs
	Agents   []metrics.Agent   `json:"agents"`
	Damaged  []cli.DamagedJSON `json:"damaged"`
}

// NewMetrics returns the command coven metrics.
func NewMetrics(a *cli.App) *cobra.Command {
	o := &options{app: a}
	cmd := &cobra.Command{
		Use: "metrics", Short: "Show how agents do: success, duration, approvals", Args: cobra.NoArgs,
		Long: `Show how agents do, from the records of sessions: each agent of steps (primary), and each that another
agent or a person started (subagent). A run is an agent step that has a result, or a subagent that
has ended. P50 and P95 are durations that half of the runs and 95 of 100 do not exceed. APPROVED is how
many of its questions about tool calls were approved, REFLECTED how many of its evaluated runs
passed in the end; both say of how many. Their usage: coven cost --by agent.

Sessions whose records are damaged do not count and are named.`,
		Example: `  coven metrics --since 7d
  coven metrics --agent code-reviewer --json`,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			found, err := o.measure(p)
			if err != nil {
				return err
			}
			return o.print(found)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "only the runs of this `AGENT`")
	f.StringVar(&o.since, "since", "", "only runs that ended in this `AGE` until now: 12h, 7d, 2w")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

// measure reads the sessions.
func (o *options) measure(p *project.Project) (metricsJSON, error) {
	since, err := o.app.Since(o.since, "coven metrics --since 7d")
	found := metricsJSON{Since: since}
	if err != nil {
		return found, err
	}
	all, broken := p.Finder.Summaries()
	var runs []metrics.Run
	for _, s := range all {
		if s.IsOver() && s.Ended.Before(found.Since) {
			continue
		}
		own, err := o.runsOf(s, found.Since)
		broken = errors.Join(broken, err)
		if len(own) > 0 {
			found.Sessions++
		}
		runs = append(runs, own...)
	}
	found.Agents = metrics.Of(runs)
	found.Damaged, err = o.app.ReportDamaged(broken)
	return found, err
}

// runsOf returns the runs of a session that the flags select.
func (o *options) runsOf(s session.Summary, since time.Time) ([]metrics.Run, error) {
	view, err := s.View()
	if err != nil {
		return nil, err
	}
	events, err := session.Events(s.Dir())
	if err != nil {
		return nil, &session.DamagedError{Session: s.ID, Dir: s.Dir(), Task: s.Task, Started: s.Started, Err: err}
	}
	var own []metrics.Run
	for _, r := range metrics.Runs(view, events) {
		if !r.Ended.Before(since) && (o.agent == "" || r.Agent == o.agent) {
			own = append(own, r)
		}
	}
	return own, nil
}

func (o *options) print(found metricsJSON) error {
	if o.asJSON {
		return o.app.PrintJSON(found)
	}
	if len(found.Agents) == 0 {
		return o.app.Printf("%s\n", o.nothing())
	}
	return cli.PrintTable(o.app, "AGENT\tKIND\tRUNS\tSUCCESS\tP50\tP95\tAPPROVED\tREFLECTED", found.Agents, func(a metrics.Agent) string {
		return fmt.Sprintf("%s\t%s\t%d\t%.0f%%\t%s\t%s\t%s\t%s",
			terminal.Printable(a.Agent), a.Kind, a.Runs, 100*a.Success, took(a.P50), took(a.P95),
			share(a.Approvals.Rate, a.Approvals.Answered), share(a.Reflection.Rate, a.Reflection.Runs))
	})
}

// nothing reports that no run was selected.
func (o *options) nothing() string {
	text := "no run"
	if o.agent != "" {
		text += " of agent '" + terminal.Printable(o.agent) + "'"
	}
	if o.since != "" {
		text += " in the last " + o.since
	}
	return text
}

func took(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// share formats a rate: 75% of 8.
func share(rate *float64, of int) string {
	if rate == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%% of %d", 100**rate, of)
}
