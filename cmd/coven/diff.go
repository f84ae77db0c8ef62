package main

import (
	"github.com/spf13/cobra"
)

func newDiff(a *app) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:               "diff TASK",
		Short:             "Show what a task's worktree changes: committed, uncommitted and untracked",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			return a.printDiff(cmd.Context(), &desk{house: h}, args[0], stat)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show the files and the size of their changes only")
	return cmd
}
