package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

func newReject(a *app) *cobra.Command {
	var reason string
	var req worktree.RemoveRequest
	cmd := &cobra.Command{
		Use:   "reject TASK --reason TEXT",
		Short: "Reject a change: store it, free the task, tell the next attempt why",
		Long: `Reject what a task's session made. Its worktree is stored under
refs/coven/rescue before it is removed, the task is open again, and the next
run of the task is told what was tried and why it was rejected.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return exit.Usagef("", "--reason is needed: the next attempt is told")
			}
			return a.atDesk(cmd.Context(), func(d *desk) error {
				v, err := d.house.find(args[0])
				if err != nil {
					return err
				}
				return a.reject(cmd.Context(), d, v, reason, req)
			})
		},
	}
	removeFlags(cmd, &req)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the next attempt and for people")
	return cmd
}

// reject rejects a change and tells what became of it.
func (a *app) reject(ctx context.Context, d *desk, v session.View, reason string, req worktree.RemoveRequest) error {
	ended, err := d.reject(ctx, v, reason, req)
	if err != nil {
		return err
	}
	return a.tell("%s", rejectedText(v, ended))
}
