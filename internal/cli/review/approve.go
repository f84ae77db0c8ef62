package review

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
)

// NewApprove returns the command coven approve.
func NewApprove(a *cli.App) *cobra.Command {
	var accept bool
	cmd := &cobra.Command{
		Use:   "approve TASK",
		Short: "Approve a change that waits for review, and land it",
		Long: `Approve a change that waits for review, and land it. A change with open error
findings lands only with --accept-findings: the record says who accepted which.
coven review TASK shows them.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error { return approve(cmd.Context(), c, args[0], accept) })
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-findings", false, "accept the open error findings of the change")
	return cmd
}

func approve(ctx context.Context, c *control.Controller, id string, accept bool) error {
	v, err := c.Project.Find(id)
	if err != nil {
		return err
	}
	if v.Status != session.Waiting || v.Reason != "review" || v.Review == nil {
		return exit.Failedf("coven why "+shellword.Word(id), "task %s does not wait for a review: it is %s", id, control.StateOf(v))
	}
	if len(v.Open) > 0 && !accept {
		return exit.Failedf(control.AcceptCommand(v), "%s", control.Unaccepted(v))
	}
	return cli.ExitStatus(c.Approve(ctx, v, v.Review.Patch))
}
