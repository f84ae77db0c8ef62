package review

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
)

// NewDiff returns the command coven diff.
func NewDiff(a *cli.App) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:               "diff TASK",
		Short:             "Show what a task changes",
		Long:              "Show everything that a task's worktree changes: committed, uncommitted and untracked.",
		Example:           "  coven diff bd-12\n  coven diff bd-12 --stat",
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
			return a.PrintDiff(cmd.Context(), &control.Controller{Project: p}, args[0], stat)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "list the files and the size of their changes")
	return cmd
}
