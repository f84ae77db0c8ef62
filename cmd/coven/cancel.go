package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
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

// removeFlags are for commands that remove a worktree with ignored files.
func removeFlags(cmd *cobra.Command, req *worktree.RemoveRequest) {
	cmd.Flags().BoolVar(&req.KeepBig, "keep-big", false, "store ignored files of any size")
	cmd.Flags().BoolVar(&req.DropIgnored, "drop-ignored", false, "let ignored files go that are too large to store")
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
		return a.tell("%s  cancelled; its change had landed as %.10s, the task is closed\n", printable(id), ended.Commit)
	}
	return a.tell("%s  cancelled; %s\n  next: coven run %s\n", printable(id), keptAs(ended.Rescue), printable(shellWord(id)))
}

// stopTime bounds how long coven waits for another coven to stop a session.
const stopTime = time.Minute

// stop asks the coven that runs a session to stop it, and waits until it has.
func (d *desk) stop(ctx context.Context, v session.View) (session.View, error) {
	name, err := session.Ask(d.house.repo.Root, v.ID, session.Request{Kind: session.KindCancel, By: d.house.env.user(), Time: d.house.env.now()})
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		now, err := session.Load(v.Dir)
		if err != nil || now.Status != session.Running && !session.Busy(v.Dir) {
			session.Withdraw(name)
			return now, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			session.Withdraw(name)
			if err := context.Cause(ctx); errors.Is(err, errInterrupted) {
				return v, err
			}
			return v, person("kill "+pidOf(v.Holder), "task %s: the coven that runs it (%s) does not stop", v.Task, v.Holder)
		}
	}
}
