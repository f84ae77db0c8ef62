package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

func newReject(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reject TASK --reason TEXT",
		Short: "Reject a change: store it, free the task, tell the next attempt why",
		Long: `Reject what a task's session made. Its worktree is stored under
refs/coven/rescue before it is removed, the task is open again, and the next
run of the task is told what was tried and why it was rejected.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage("", "--reason is needed: the next attempt is told")
			}
			return a.atDesk(cmd.Context(), func(d *desk) error {
				v, err := d.find(args[0])
				if err != nil {
					return err
				}
				return d.reject(cmd.Context(), v, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the next attempt and for people")
	return cmd
}

// reject ends a session that is not over without landing what it made.
func (d *desk) reject(ctx context.Context, v session.View, reason string) error {
	switch v.Status {
	case session.Waiting, session.Blocked, session.Interrupted:
	default:
		return missing("coven why "+shellWord(v.Task), "task %s cannot be rejected: it is %s", v.Task, stateText(v))
	}
	j, err := d.jobOf(v)
	if err != nil {
		return err
	}
	s, err := session.Open(d.house.repo.Root, v.ID, d.app().now)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	ref, err := d.putAway(ctx, v)
	if err != nil {
		return err
	}
	if err := j.tracker.Release(ctx, "coven: rejected: "+reason); err != nil {
		return err
	}
	held, err := d.house.repo.ClaimOf(ctx, v.Task)
	if err == nil && held.Session == v.ID {
		err = d.house.repo.Unclaim(ctx, v.Task, held.Oid)
	}
	if err != nil && !errors.Is(err, worktree.ErrNoClaim) {
		return err
	}
	if v.Review != nil {
		answer := event.Review{Patch: v.Review.Patch, By: d.user(), Reason: reason}
		if err := s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, answer); err != nil {
			return err
		}
	}
	ended := event.Ended{Summary: v.Summary, Reason: "rejected: " + reason, Rescue: ref}
	if err := s.Append(event.Event{Type: event.SessionFailed}, ended); err != nil {
		return err
	}
	return d.app().say("%s  rejected; everything it made is stored as %s\n  next: coven run %s\n", v.Task, ref, shellWord(v.Task))
}

// putAway stores and removes the worktree of a session.
func (d *desk) putAway(ctx context.Context, v session.View) (ref string, err error) {
	tree, err := d.house.repo.Find(ctx, v.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return v.Rescue, nil
	}
	if err != nil {
		return "", err
	}
	return tree.Remove(ctx, worktree.RemoveRequest{Note: "session " + v.ID})
}
