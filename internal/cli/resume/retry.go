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
	var r control.RetryRequest
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "Run the failed step again, or everything from a step on",
		Long: `Run the failed step again in the current worktree, and continue from there. With
--from, run that step and all later ones again; their recorded results are
discarded. Nothing in the worktree is undone: the agent is told to look at it.

With --fresh, agents do not continue earlier conversations. A new one is told the task,
the last tool calls, the changed files, the open findings and your comments.

A session keeps the settings with which it began. With --new-settings, it takes the
present ones: the checks, worktree.setup and teardown, permissions, MCP servers and
tools, and the grimoire with its prompts, agents and skills if its steps are still the
same. Receipts and approvals from before do not count.`,
		Example: `  coven retry bd-12
  coven retry bd-12 --from implement
  coven retry bd-12 --fresh
  coven retry bd-12 --new-settings`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Retried),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				r.Task = args[0]
				return a.WorkOn(cmd.Context(), c, r.Task, func(ctx context.Context) (control.Outcome, error) { return c.Retry(ctx, r) })
			})
		},
	}
	cmd.Flags().StringVar(&r.From, "from", "", "run this `STEP` and all later ones again (default: the failed step)")
	cmd.Flags().BoolVar(&r.Fresh, "fresh", false, "begin new conversations in the same worktree")
	cmd.Flags().BoolVar(&r.NewSettings, "new-settings", false, "take the present checks and other settings instead of those of the session")
	switchFlags(a, cmd, &r.Switch)
	cli.CompleteFlag(cmd, "from", a.CompleteWords(stepNames))
	return cmd
}

// switchFlags defines the flags that change the provider and the model of a session.
func switchFlags(a *cli.App, cmd *cobra.Command, to *control.Switch) {
	cmd.Flags().StringVar(&to.Provider, "provider", "", "continue with the provider `NAME`, in new conversations")
	cmd.Flags().StringVar(&to.Model, "model", "", "continue with the model `NAME`")
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	cli.Once(cmd, "provider", "model")
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
