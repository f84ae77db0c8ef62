// Package review holds the commands for deciding on a change: review,
// approve, reject and diff.
package review

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

// NewReview returns the command coven review.
func NewReview(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "review [TASK]",
		Short: "Show a change to decide on: summary, checks, findings and diff",
		Long: `Show everything needed to decide on a change: the whole request, the agent's summary,
the findings (first those that block the approval), the checks that ran, the cost and
the diff. On a terminal it opens in your pager ($PAGER) and then asks. Without TASK:
list the changes that wait for a review.`,
		Example: `  coven review
  coven review bd-12`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listReviews(cmd.Context(), a, asJSON)
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error { return reviewTask(cmd.Context(), a, c, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listReviews(ctx context.Context, a *cli.App, asJSON bool) error {
	p, err := a.Open(ctx)
	if err != nil {
		return err
	}
	waiting, damaged, err := control.Reviews(p)
	if err != nil {
		return err
	}
	a.PrintDamaged(damaged)
	switch {
	case asJSON:
		return a.PrintJSON(waiting)
	case len(waiting) == 0:
		return a.Printf("no change is waiting for review\n  next: coven status\n")
	}
	short := map[string]string{}
	if a.Terminal {
		short, err = p.ShortIDs(ctx)
	}
	if err != nil {
		return err
	}
	return a.StatusTable(waiting, short)
}

func reviewTask(ctx context.Context, a *cli.App, c *control.Controller, id string, asJSON bool) error {
	p, err := c.Page(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(p)
	}
	if err := a.Page(ctx, a.ReviewPage(p)); err != nil {
		return err
	}
	if !a.Interactive || !control.WaitsForReview(p.View) {
		return a.Printf("  next: %s\n", p.Next())
	}
	return askAndDo(ctx, a, c, p.View, p.Diff.PatchID)
}

// askAndDo asks about a change and carries out the answer. patch is the ID of the patch
// that the person has seen.
func askAndDo(ctx context.Context, a *cli.App, c *control.Controller, v session.View, patch string) error {
	answer, err := a.Question(ctx, c, v)
	switch {
	case err != nil:
		return err
	case answer.Verdict == scheduler.Approved:
		return cli.ExitStatus(c.Approve(ctx, control.ApproveRequest{Task: v.Task, Seen: v, Patch: &patch, AcceptFindings: true}))
	case answer.Verdict == scheduler.Revised:
		return cli.ExitStatus(c.Revise(ctx, control.ReviseRequest{Task: v.Task, Seen: v, Comments: []string{answer.Reason}}))
	case answer.Verdict == scheduler.Rejected:
		return reject(ctx, a, c, control.RejectRequest{Task: v.Task, Seen: v, Reason: answer.Reason})
	}
	return exit.Status(exit.Person)
}
