package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/screen"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

func newApprove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "approve TASK",
		Short:             "Approve a change that waits for review, and land it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atDesk(cmd.Context(), func(d *desk) error { return approve(cmd.Context(), d, args[0]) })
		},
	}
}

func approve(ctx context.Context, d *desk, id string) error {
	v, err := d.find(id)
	if err != nil {
		return err
	}
	if v.Status != session.Waiting || v.Reason != "review" || v.Review == nil {
		return missing("coven why "+shellWord(id), "task %s does not wait for a review: it is %s", id, stateText(v))
	}
	return outcome(d.approveNow(ctx, v, v.Review.Patch))
}

// outcome is the exit of a command that ran one session.
func outcome(e runner.Ending, err error) error {
	if err != nil {
		return err
	}
	return status(exitOf(e))
}

// atDesk opens the repository and what runs tasks for one command. The command
// asks no questions.
func (a *app) atDesk(ctx context.Context, do func(*desk) error) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	e, err := h.start()
	if err != nil {
		return err
	}
	defer e.close()
	d := &desk{house: h, engine: e, screen: a.screen(false, screen.Lines)}
	defer d.screen.Close()
	return do(d)
}

// find returns the newest session of a task.
func (d *desk) find(id string) (session.View, error) { return d.house.find(id) }

func (h *house) find(id string) (session.View, error) {
	v, err := session.OfTask(h.repo.Root, id)
	if errors.Is(err, session.ErrNone) {
		return v, missing("coven status", "task %s has no session", id)
	}
	return v, err
}

// stateText is a session's state in words: waiting (review).
func stateText(v session.View) string {
	v = v.Shown()
	if v.Reason != "" {
		return v.Status + " (" + v.Reason + ")"
	}
	return v.Status
}
