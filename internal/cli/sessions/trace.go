package sessions

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/trace"
	"github.com/coven-run/coven/internal/terminal"
)

// traceJSON is a trace as sessions trace --json prints it.
type traceJSON struct {
	ID         string        `json:"session_id"`
	Status     string        `json:"status"`
	DurationMS int64         `json:"duration_ms"`
	Entries    []trace.Entry `json:"execution_trace"`
}

func newTrace(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "trace SESSION", Short: "Show which agents ran, who started whom, and how long each took",
		Long: `Show the agents of a session as a tree: who started whom, how long each took, what became of it,
and the tokens that it used. SESSION is the id of a session or of its task. An agent that still
runs is marked with an ellipsis.`,
		Example: `  coven sessions trace 2026-01-02-add-a-flag
  coven sessions trace bd-12 --json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: inSession(a, func(_ context.Context, p *project.Project, v session.View, _ []string) error {
			now := p.Env.Now()
			took := tookOf(v, now)
			if asJSON {
				return a.PrintJSON(traceJSON{v.ID, control.StateOf(control.Shown(v)), took.Milliseconds(), v.ExecutionTrace()})
			}
			return a.Printf("%s", terminal.PrintableLines(trace.Text(v.ID, took, v.ExecutionTrace(), now)))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// tookOf returns the time from the start of a session to its end or, if that is unknown, to its last
// record.
func tookOf(v session.View, now time.Time) time.Duration {
	end := v.Ended
	if end.IsZero() && v.Status == session.Running {
		end = now
	}
	if end.IsZero() {
		end = v.Updated
	}
	return max(end.Sub(cmp.Or(v.Started, end)), 0)
}
