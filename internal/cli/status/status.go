// Package status holds the commands that explain the state of tasks: status and why.
package status

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewStatus returns the command coven status.
func NewStatus(a *cli.App) *cobra.Command {
	var asJSON, all bool
	var remote string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show sessions and the next command for each",
		Long: `Show all open sessions and the last ten that ended, of each task the last one, with the time
since they came into their state, what they cost, and what each is doing or the next command for it. Below
are the directories of the tasks' worktrees, and the tasks of the tracker that are ready
to run or wait for others. coven need not be running. A session is "gone" if its record
was removed although its task has a branch, a claim or snapshots: coven doctor --fix
restores it.

On a terminal, ids are shortened: every command takes the beginning of an id. The
output of a pipe has full ids, and --json prints the sessions only.`,
		Example: `  coven status
  coven status --all --json
  coven status --remote origin`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			if remote != "" {
				return printRemote(cmd.Context(), a, p, remote, asJSON)
			}
			a.Mirror(cmd.Context(), p)
			if asJSON {
				return printJSON(cmd.Context(), a, p, all)
			}
			o, err := control.OverviewOf(cmd.Context(), p, all)
			if err != nil {
				return err
			}
			a.Fleet(p).Explain(cmd.Context(), o.Sessions)
			return a.PrintOverview(o, all)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show every session and task")
	cmd.Flags().StringVar(&remote, "remote", "", "show the sessions in progress that this git `REMOTE` keeps")
	return cmd
}

// printRemote prints the sessions that a remote keeps.
func printRemote(ctx context.Context, a *cli.App, p *project.Project, remote string, asJSON bool) error {
	views, damaged := handover.List(ctx, p, remote)
	for i := range views {
		views[i] = control.Shown(views[i])
	}
	var err error
	switch {
	case asJSON:
		err = a.PrintJSON(append([]session.View{}, views...))
	case len(views) > 0:
		err = a.StatusTable(views, nil)
	case damaged == nil:
		err = a.Printf("%s keeps no sessions\n  next: coven run --remote %s\n", terminal.Printable(remote), terminal.Printable(shellword.Word(remote)))
	}
	return errors.Join(err, damaged)
}

// printJSON prints the sessions as a list.
func printJSON(ctx context.Context, a *cli.App, p *project.Project, all bool) error {
	list := control.CurrentSessions
	if all {
		list = control.Sessions
	}
	views, err := list(p)
	if err != nil {
		return err
	}
	lost, err := p.Lost(ctx)
	if err != nil {
		return err
	}
	for _, l := range lost {
		views = append(views, l.View())
	}
	a.Fleet(p).Explain(ctx, views)
	for i := range views {
		views[i] = control.Shown(views[i])
	}
	return a.PrintJSON(views)
}
