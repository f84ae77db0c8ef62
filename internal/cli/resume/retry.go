package resume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
)

// NewRetry returns the command coven retry.
func NewRetry(a *cli.App) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "Run the failed step again, or everything from a step on",
		Long: `Run the failed step again in the current worktree, and continue from there. With
--from, run that step and all later ones again; their recorded results are
discarded. Nothing in the worktree is undone: the agent is told to look at it.`,
		Example: `  coven retry bd-12
  coven retry bd-12 --from implement`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Retried),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				return cli.ExitStatus(c.Retry(cmd.Context(), control.RetryRequest{Task: args[0], From: from}))
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "run this `STEP` and all later ones again (default: the failed step)")
	cli.CompleteFlag(cmd, "from", a.CompleteWords(stepNames))
	return cmd
}

// stepNames returns the steps that the task's session has run.
func stepNames(ctx context.Context, p *project.Project, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	v, err := p.Find(ctx, args[0])
	if err != nil {
		return nil
	}
	return control.StepPaths(v)
}
