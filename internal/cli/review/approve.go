package review

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
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
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				return cli.ExitStatus(c.Approve(cmd.Context(), control.ApproveRequest{Task: args[0], AcceptFindings: accept}))
			})
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-findings", false, "accept the open error findings of the change")
	return cmd
}
