package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

func newResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [TASK]",
		Short: "Go on with a session that was interrupted, limited or blocked",
		Long: `Go on with a task's session: steps that are on record are not run again, an
agent that was cut off goes on with its conversation, a step that blocked the
task is run anew. Without TASK: every session that was interrupted, that met a
limit, or that waited for the checkout.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeTasks(resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atDesk(cmd.Context(), func(d *desk) error { return resume(cmd.Context(), d, args) })
		},
	}
}

func resume(ctx context.Context, d *desk, args []string) error {
	if len(args) == 1 {
		v, err := d.find(args[0])
		if err != nil {
			return err
		}
		return outcome(d.goOn(ctx, v))
	}
	views, broken := session.List(d.house.repo.Root)
	d.app().explain(broken)
	code, count := exitOK, 0
	for _, v := range views {
		if v.Status != session.Interrupted && (v.Status != session.Waiting || v.Reason == "review") {
			continue
		}
		err := outcome(d.goOn(ctx, v))
		d.explain(err)
		code, count = worse(code, codeOf(err)), count+1
		if ctx.Err() != nil {
			break
		}
	}
	if count == 0 {
		return d.app().say("nothing to resume\n  next: coven status\n")
	}
	return status(code)
}

// goOn resumes one session, where that is what its state asks for.
func (d *desk) goOn(ctx context.Context, v session.View) (runner.Ending, error) {
	task := shellWord(v.Task)
	switch {
	case v.Status == session.Waiting && v.Reason == "review":
		return runner.Ending{}, person("coven approve "+task, "task %s waits for a review", v.Task)
	case v.Status == session.Running:
		return runner.Ending{}, person("coven logs -f "+task, "task %s: %w", v.Task, session.ErrBusy)
	case v.Status == session.Completed:
		return runner.Ending{}, missing("coven why "+task, "task %s is completed: there is nothing to resume", v.Task)
	case v.Status == session.Failed, v.Status == session.Cancelled:
		return runner.Ending{}, missing("coven run "+task, "task %s is over (%s): %s", v.Task, v.Status, v.Detail)
	}
	return d.resume(ctx, v)
}
