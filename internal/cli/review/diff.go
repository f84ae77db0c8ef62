package review

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/exit"
)

// NewDiff returns the command coven diff.
func NewDiff(a *cli.App) *cobra.Command {
	var stat bool
	var since string
	cmd := &cobra.Command{
		Use:   "diff TASK",
		Short: "Show what a task changes",
		Long: `Show everything that a task's worktree changes: committed, uncommitted and untracked.
--since look shows only the changes since you last looked at it, on the screen, on the page, or with coven
review on a terminal. --since turn shows only the changes since you last asked for some.`,
		Example:           "  coven diff bd-12\n  coven diff bd-12 --stat\n  coven diff bd-12 --since look",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			if err := control.HideSecrets(p); err != nil {
				return err
			}
			a.Mirror(cmd.Context(), p)
			diff, err := diffSince(cmd.Context(), &control.Controller{Project: p}, args[0], since)
			if err != nil {
				return err
			}
			return a.PrintDiff(diff, stat)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "list the files and the size of their changes")
	cmd.Flags().StringVar(&since, "since", "", "show only the changes since a `POINT`: look (when you last looked) or turn (when you last asked for changes)")
	cli.Once(cmd, "since")
	return cmd
}

// diffSince returns the change of a task, or if since is not empty, only a part of it.
func diffSince(ctx context.Context, c *control.Controller, task, since string) (control.Diff, error) {
	if since == "" {
		return c.Diff(ctx, task)
	}
	extent := review.Extent(since)
	if extent != review.SinceLook && extent != review.SinceTurn {
		return control.Diff{}, exit.Usagef("coven diff --help", "--since is look or turn, not %q", since)
	}
	r, err := review.Of(ctx, c, task)
	if err != nil {
		return control.Diff{}, err
	}
	return review.Diff(ctx, c, r, extent)
}
