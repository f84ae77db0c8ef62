package review

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewReject returns the command coven reject.
func NewReject(a *cli.App) *cobra.Command {
	var r control.RejectRequest
	cmd := &cobra.Command{
		Use:   "reject TASK --reason TEXT",
		Short: "Reject a change and tell the next attempt why",
		Long: `Reject a task's change. Its worktree is stored under refs/coven/rescue and removed,
and the task is open again. The next run is told what was tried and why it was
rejected.`,
		Example:           `  coven reject bd-12 --reason "the flag exists already"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(r.Reason) == "" {
				return exit.Usagef("coven reject "+shellword.Word(args[0])+" --reason TEXT", "--reason is required: it is passed to the next attempt")
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				r.Task = args[0]
				return reject(cmd.Context(), a, c, r)
			})
		},
	}
	cli.RemoveFlags(cmd, &r.Ignored)
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why the change is rejected, as `TEXT` for the next attempt")
	cli.Once(cmd, "reason")
	return cmd
}

// reject rejects a change and prints the result.
func reject(ctx context.Context, a *cli.App, c *control.Controller, r control.RejectRequest) error {
	done, err := c.Reject(ctx, r)
	if err != nil {
		return err
	}
	return a.Showf("%s", cli.RejectedText(done))
}
