package resume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewCancel returns the command coven cancel.
func NewCancel(a *cli.App) *cobra.Command {
	var ignored control.IgnoredFiles
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Stop a task's session for good and reopen the task",
		Long: `Stop a task's session, even while another coven is running it: all its processes are
stopped first. Its worktree is stored under refs/coven/rescue and removed, and the
task is open again.`,
		Example:           `  coven cancel bd-12`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.UnderWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				if c.Fleet != nil {
					a.Mirror(cmd.Context(), c.Project) // workers may run another session of the task
				}
				return cancel(cmd.Context(), a, c, control.CancelRequest{Task: args[0], Ignored: ignored})
			})
		},
	}
	cli.RemoveFlags(cmd, &ignored)
	return cmd
}

func cancel(ctx context.Context, a *cli.App, c *control.Controller, r control.CancelRequest) error {
	done, err := c.Cancel(ctx, r)
	if err != nil {
		return err
	}
	if done.Commit != "" {
		return a.Showf("%s  cancelled; its change had landed as %.10s, the task is closed\n", terminal.Printable(done.Task), done.Commit)
	}
	return a.Showf("%s  cancelled; %s\n  next: coven run %s\n", terminal.Printable(done.Task), cli.StoredAs(done.Rescue), terminal.Printable(shellword.Word(done.Task)))
}
