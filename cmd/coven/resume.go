package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

func newResume(a *app) *cobra.Command {
	var more string
	cmd := &cobra.Command{
		Use:   "resume [TASK] [--budget usd=+5]",
		Short: "Go on with a session that was interrupted, limited or blocked",
		Long: `Go on with a task's session: steps that are on record are not run again, an
agent that was cut off goes on with its conversation, a step that blocked the
task is run anew. Without TASK: every session that was interrupted, that met a
limit, or that waited for the checkout.

--budget adds to the budgets that hold where the task waits: usd, tokens, turns
and wall (a duration), several with commas between them.`,
		Example: `  coven resume
  coven resume bd-12 --budget usd=+5,turns=+50`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeTasks(resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := moreBudget(more)
			if err != nil {
				return err
			}
			return a.atDesk(cmd.Context(), func(d *desk) error {
				if len(args) == 0 {
					return a.resumeAll(cmd.Context(), d, amount)
				}
				v, err := d.house.find(args[0])
				if err != nil {
					return err
				}
				return outcome(d.goOn(cmd.Context(), v, amount))
			})
		},
	}
	cmd.Flags().StringVar(&more, "budget", "", "add `KEY=+AMOUNT` to the budget: usd, tokens, turns, wall")
	return cmd
}

// moreBudget reads what a person adds to a budget.
func moreBudget(text string) (budget.Amount, error) {
	if text == "" {
		return budget.Amount{}, nil
	}
	more, err := budget.ParseMore(text)
	if err != nil {
		return more, exit.Usagef("coven resume TASK --budget usd=+5", "--budget: %w", err)
	}
	return more, nil
}

// resumeAll goes on with every session that only needs somebody to start it.
func (a *app) resumeAll(ctx context.Context, d *desk, more budget.Amount) error {
	views, broken := session.List(d.house.repo.Root)
	a.explain(broken)
	code, count, poor := exit.OK, 0, 0
	for _, v := range views {
		if !resumable(v, more) {
			if v.Status == session.Waiting && isPoor(v) {
				poor, code = poor+1, exit.Worse(code, exit.Budget)
			}
			continue
		}
		err := outcome(d.goOn(ctx, v, more))
		a.explainBetween(err)
		code, count = exit.Worse(code, exit.Code(err)), count+1
		if ctx.Err() != nil {
			break
		}
	}
	if poor > 0 {
		err := a.say("budgets that are spent: %d\n  next: coven resume --budget usd=+5\n", poor)
		return errors.Join(err, exit.Status(code))
	}
	if count == 0 {
		return a.say("nothing to resume\n  next: coven status\n")
	}
	return exit.Status(code)
}
