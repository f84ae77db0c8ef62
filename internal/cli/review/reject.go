package review

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// NewReject returns the command coven reject.
func NewReject(a *cli.App) *cobra.Command {
	var reason string
	var req worktree.RemoveRequest
	cmd := &cobra.Command{
		Use:   "reject TASK --reason TEXT",
		Short: "Reject a change: store it, reopen the task, tell the next attempt why",
		Long: `Reject a task's change. Its worktree is stored under refs/coven/rescue and removed,
and the task is open again. The next run is told what was tried and why it was
rejected.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return exit.Usagef("", "--reason is required: the next attempt is told why")
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				v, err := c.Project.Find(args[0])
				if err != nil {
					return err
				}
				return reject(cmd.Context(), a, c, v, reason, req)
			})
		},
	}
	cli.RemoveFlags(cmd, &req)
	cmd.Flags().StringVar(&reason, "reason", "", "why the change is rejected; passed to the next attempt")
	return cmd
}

// reject rejects a change and tells what became of it.
func reject(ctx context.Context, a *cli.App, c *control.Controller, v session.View, reason string, req worktree.RemoveRequest) error {
	ended, err := c.Reject(ctx, v, reason, req)
	if err != nil {
		return err
	}
	return a.Showf("%s", cli.RejectedText(v, ended))
}
