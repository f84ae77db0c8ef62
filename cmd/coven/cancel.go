package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

func newCancel(a *app) *cobra.Command {
	var req worktree.RemoveRequest
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Stop a task's session for good, store its work and free the task",
		Long: `Stop a task's session, also while another coven works on it: everything that
the session started is ended first. Its worktree is stored under
refs/coven/rescue before it is removed, and the task is open again.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(underWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atDesk(cmd.Context(), func(d *desk) error { return a.cancel(cmd.Context(), d, args[0], req) })
		},
	}
	removeFlags(cmd, &req)
	return cmd
}

func (a *app) cancel(ctx context.Context, d *desk, id string, req worktree.RemoveRequest) error {
	v, err := d.house.find(id)
	if err != nil {
		return err
	}
	ended, err := d.cancel(ctx, v, req)
	if err != nil {
		return err
	}
	if ended.Commit != "" {
		return a.tell("%s  cancelled; its change had landed as %.10s, the task is closed\n", terminal.Printable(id), ended.Commit)
	}
	return a.tell("%s  cancelled; %s\n  next: coven run %s\n", terminal.Printable(id), keptAs(ended.Rescue), terminal.Printable(shellword.Word(id)))
}
