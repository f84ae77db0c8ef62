package sessions

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
)

func newReplay(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "replay SESSION NAME", Short: "Start a subagent of a session once more, in a session of its own",
		Long: `Start a subagent of a session once more: the same agent with the same task, permissions and model,
in a worktree and a session of its own. NAME is that of its record: code-reviewer-auth.`,
		Example: `  coven sessions replay 2026-01-02-add-a-flag code-reviewer-auth`,
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: inSession(a, func(ctx context.Context, _ *project.Project, v session.View, args []string) error {
			s, ok := v.Subagent(strings.TrimSuffix(args[1], ".md"))
			if !ok {
				return exit.Failedf("coven sessions show "+shellword.Word(v.ID), "session %s has no subagent %q", v.ID, args[1])
			}
			return again(ctx, a, s)
		}),
	}
}

// again starts a subagent with the same inputs.
func again(ctx context.Context, a *cli.App, s session.Subagent) error {
	r := grimoires.SpawnRequest{Agent: s.Agent, Task: s.Task, Model: s.Model, TaskID: strings.TrimPrefix(s.ID, s.Agent+"-") + "-2"}
	permissions := s.Permissions
	r.Permissions = &permissions
	return a.WithController(ctx, func(c *control.Controller) error {
		branch, err := control.TargetBranch(ctx, c.Project, "")
		if err != nil {
			return err
		}
		outcome, err := c.Spawn(ctx, r, control.Options{Onto: branch})
		return cli.ExitStatus(outcome, err)
	})
}
