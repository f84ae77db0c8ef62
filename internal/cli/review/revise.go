package review

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
)

// NewRevise returns the command coven revise.
func NewRevise(a *cli.App) *cobra.Command {
	var comments []string
	cmd := &cobra.Command{
		Use:   "revise TASK -m TEXT",
		Short: "Ask the agent to change its work, then review it again",
		Long: `Ask for changes to a change that waits for review, or help a task that is blocked. Each -m is a finding of yours; one
that begins with FILE:LINE: is about that line. The agent continues its conversation
in the same worktree, the steps after its work run again (checks, reviews), and the
change waits for your review again; on a terminal, coven asks. Open findings of
reviewers are passed on, too. If an agent failed, it gets the text as a message, and
goes on.`,
		Example: `  coven revise bd-12 -m "keep the old flag as an alias"
  coven revise bd-12 -m "src/main.go:41: return the error" -m "add a test"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				return a.Revise(cmd.Context(), c, control.ReviseRequest{Task: args[0], Comments: comments})
			})
		},
	}
	cmd.Flags().StringArrayVarP(&comments, "message", "m", nil, "what to change, as `TEXT` (repeatable)")
	return cmd
}
