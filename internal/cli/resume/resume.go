// Package resume holds the commands that continue or end a session: resume, retry and cancel.
package resume

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
)

// NewResume returns the command coven resume.
func NewResume(a *cli.App) *cobra.Command {
	var more string
	cmd := &cobra.Command{
		Use:   "resume [TASK] [--budget usd=+5]",
		Short: "Resume sessions that were interrupted, limited or blocked",
		Long: `Resume a task's session. Completed steps do not run again, an interrupted agent
continues its conversation, and a step that blocked the task runs again. Without
TASK: resume every session that was interrupted, reached a rate limit, or waited for
the checkout.

--budget adds to the budgets in effect where the task waits: usd, tokens, turns and
wall (a duration), separated by commas.`,
		Example: `  coven resume
  coven resume bd-12 --budget usd=+5,turns=+50`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Resting),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := moreBudget(more)
			if err != nil {
				return err
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				if len(args) == 0 {
					return resumeAll(cmd.Context(), a, c, amount)
				}
				return cli.ExitStatus(c.Resume(cmd.Context(), control.ResumeRequest{Task: args[0], Budget: amount}))
			})
		},
	}
	cmd.Flags().StringVar(&more, "budget", "", "add `KEY=+AMOUNT` to the budget: usd, tokens, turns, wall")
	return cmd
}

// moreBudget parses the value of --budget.
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

// resumeAll resumes every session that can be resumed unattended.
func resumeAll(ctx context.Context, a *cli.App, c *control.Controller, more budget.Amount) error {
	todo, err := c.Backlog(more)
	if err != nil {
		return err
	}
	a.PrintDamaged(todo.Damaged)
	code := exit.OK
	for _, v := range todo.Resumable {
		err := cli.ExitStatus(c.Resume(ctx, control.ResumeRequest{Task: v.Task, Seen: v, Budget: more}))
		a.ShowError(err)
		code = exit.Worse(code, exit.Code(err))
		if ctx.Err() != nil {
			break
		}
	}
	if poor := len(todo.OverBudget); poor > 0 {
		err := a.Printf("sessions that have spent their budget: %d\n  next: coven resume --budget usd=+5\n", poor)
		return errors.Join(err, exit.Status(exit.Worse(code, exit.Budget)))
	}
	if len(todo.Resumable) == 0 {
		return a.Printf("nothing to resume\n  next: coven status\n")
	}
	return exit.Status(code)
}
