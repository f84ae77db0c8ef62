package resume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

// NewCancel returns the command coven cancel.
func NewCancel(a *cli.App) *cobra.Command {
	var req worktree.RemoveRequest
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Stop a task's session for good, store its work and reopen the task",
		Long: `Stop a task's session, even while another coven is running it: all its processes are
stopped first. Its worktree is stored under refs/coven/rescue and removed, and the
task is open again.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.UnderWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error { return cancel(cmd.Context(), a, c, args[0], req) })
		},
	}
	cli.RemoveFlags(cmd, &req)
	return cmd
}

func cancel(ctx context.Context, a *cli.App, c *control.Controller, id string, req worktree.RemoveRequest) error {
	v, err := c.Project.Find(id)
	if err != nil {
		return err
	}
	ended, err := c.Cancel(ctx, v, req)
	if err != nil {
		return err
	}
	if ended.Commit != "" {
		return a.Showf("%s  cancelled; its change had landed as %.10s, the task is closed\n", terminal.Printable(id), ended.Commit)
	}
	return a.Showf("%s  cancelled; %s\n  next: coven run %s\n", terminal.Printable(id), cli.StoredAs(ended.Rescue), terminal.Printable(shellword.Word(id)))
}
