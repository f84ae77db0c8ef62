package resume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// NewRetry returns the command coven retry.
func NewRetry(a *cli.App) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "retry TASK [--from STEP]",
		Short: "Run the step that failed again, or everything from a step on",
		Long: `Run the step that failed again, in the worktree as it is, and go on from there.
With --from: that step and all after it run again; what they recorded counts no
more. Nothing in the worktree is undone: the agent is told to look.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Retried),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error { return cli.ExitStatus(c.Retry(cmd.Context(), args[0], from)) })
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "run again from this `STEP` on: its name, or its path as coven status shows it")
	cli.CompleteFlag(cmd, "from", a.CompleteWords(stepNames))
	return cmd
}

// stepNames are the steps that the task's session has run.
func stepNames(_ context.Context, p *project.Project, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	v, err := session.OfTask(p.Repo.Root, args[0])
	if err != nil {
		return nil
	}
	return control.StepPaths(v)
}
