// Package sessions holds the commands about the records of sessions.
package sessions

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/archive"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewSessions returns the command coven sessions.
func NewSessions(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "sessions", Short: "Create, list, read, fork, trace, replay, export and remove sessions",
	}, newNew(a), newList(a), newShow(a), newMessages(a), newFork(a), newTrace(a), newResume(a), newReplay(a), newExport(a), newClean(a), newRemove(a))
}

// listedJSON is a session as sessions list --json prints it.
type listedJSON struct {
	ID      string    `json:"session_id"`
	Task    string    `json:"task"`
	Status  string    `json:"status"`
	Started time.Time `json:"started_at"`
	Ended   time.Time `json:"completed_at,omitzero"`
	CostUSD float64   `json:"cost_usd"`
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List all sessions, the newest first", Args: cobra.NoArgs,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			views, err := control.Sessions(p)
			if err != nil {
				return err
			}
			all := []listedJSON{}
			for _, v := range views {
				v = control.Shown(v)
				all = append(all, listedJSON{v.ID, v.Task, control.StateOf(v), v.Started, v.Ended, v.Used.USD})
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			return cli.PrintTable(a, "SESSION\tTASK\tSTATUS\tSTARTED\tCOST", all, func(s listedJSON) string {
				started := s.Started.Local().Format("2006-01-02 15:04")
				return fmt.Sprintf("%s\t%s\t%s\t%s\t$%.2f", terminal.Printable(s.ID), terminal.Printable(s.Task), s.Status, started, s.CostUSD)
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// inSession returns a function for cobra.Command.RunE that calls run with the session that the first argument
// identifies.
func inSession(a *cli.App, run func(context.Context, *project.Project, session.View, []string) error) func(*cobra.Command, []string) error {
	return a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
		v, err := p.SessionOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return run(cmd.Context(), p, v, args)
	})
}

func dirOf(p *project.Project, v session.View) string {
	return filepath.Join(p.Repo.Root, session.Dir, v.ID)
}

func newShow(a *cli.App) *cobra.Command {
	var asJSON, check bool
	cmd := &cobra.Command{
		Use: "show SESSION", Short: "Show what a session did, what it used, and its subagents",
		Long: `Show what a session did, what it used, and its subagents. SESSION is the id of a session or of
its task. --check tells whether all its records are there, readable and linked to each other.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: inSession(a, func(_ context.Context, p *project.Project, v session.View, _ []string) error {
			if check {
				return checked(a, p, v)
			}
			v = control.Shown(v)
			if asJSON {
				return a.PrintJSON(v)
			}
			return show(a, v)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&check, "check", false, "check the records instead")
	return cmd
}

// checked prints the problems in the records of a session.
func checked(a *cli.App, p *project.Project, v session.View) error {
	var ids []string
	for _, s := range v.Subagents {
		if !s.Started.IsZero() {
			ids = append(ids, s.ID)
		}
	}
	wrong, err := archive.Check(dirOf(p, v), ids)
	if err != nil {
		return err
	}
	for _, text := range wrong {
		if err := a.Printf("%s\n", terminal.Printable(text)); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return exit.Status(exit.Failed)
	}
	return a.Printf("%d records are complete\n", len(ids)+1)
}

func show(a *cli.App, v session.View) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, terminal.Printable(fmt.Sprintf(format, args...))) //nolint:errcheck // Flush reports it
	}
	used := v.Tokens()
	row("session", "%s", v.ID)
	row("task", "%s", v.Task)
	row("query", "%s", v.Info.Query)
	if from := v.Info.Forked; from != nil {
		row("forked from", "%s at message %s", from.Session, from.Message)
	}
	row("status", "%s", control.StateOf(v))
	row("agent", "%s (%s)", v.PrimaryAgent(), v.Info.Model)
	row("tokens", "%d (%d in, %d out)", used.Total, used.Input, used.Output)
	row("cost", "$%.4f", v.Used.USD)
	for _, s := range v.Steps {
		row("step", "%s %s", s.Path, s.Status)
	}
	for _, s := range v.Subagents {
		row("subagent", "%s %s, %d tokens, $%.4f", s.ID, s.Status, s.Tokens.Total, s.CostUSD)
	}
	return cli.WriteError(w.Flush())
}

func newResume(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "resume SESSION", Short: "Resume a session, as coven resume does", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Resting),
		RunE: inSession(a, func(ctx context.Context, p *project.Project, v session.View, _ []string) error {
			newest, err := p.Finder.OfTask(v.Task)
			if err != nil {
				return err
			}
			if newest.ID != v.ID {
				return exit.Failedf("coven sessions show "+shellword.Word(newest.ID), "session %s was followed by session %s of the same task", v.ID, newest.ID)
			}
			return a.WithController(ctx, func(c *control.Controller) error {
				return a.WorkOn(ctx, c, v.Task, func(ctx context.Context) (control.Outcome, error) {
					return c.Resume(ctx, control.ResumeRequest{Task: v.Task})
				})
			})
		}),
	}
}
