// Package review holds the commands for deciding on a change: review,
// approve, reject and diff.
package review

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

// NewReview returns the command coven review.
func NewReview(a *cli.App) *cobra.Command {
	var asJSON bool
	var o commentOptions
	cmd := &cobra.Command{
		Use:   "review [TASK [TEXT]]",
		Short: "Show a change to decide on, and comment on its lines",
		Long: `Show everything needed to decide on a change: the whole request, the agent's summary,
the findings (first those that block the approval), your comments, the checks that ran,
the cost and the diff. On a terminal it opens in your pager ($PAGER) and then asks.
Without TASK: list the changes that wait for a review.

--comment adds a comment on a line, on lines (a.go:10-14), or on a line that the change
removes (a.go:-7, by its number in the target). --suggest adds a text that replaces the lines. Comments
are drafts, which follow their lines when the change goes on, until --send sends all of them to the agent
at once. It continues in the same worktree and answers each; --drafts shows the answers, and which
lines have changed since. To apply suggestions yourself instead, give the output of --patch to git apply.`,
		Example: `  coven review
  coven review bd-12
  coven review bd-12 --comment src/main.go:41 "return the error"
  coven review bd-12 --suggest src/main.go:12 "const limit = 100"
  coven review bd-12 --send
  coven review bd-12 --patch | git -C "$(coven worktree path bd-12)" apply`,
		Args:              o.args,
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listReviews(cmd.Context(), a, asJSON)
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error {
				if o.any() {
					return o.run(cmd, a, c, args, asJSON)
				}
				return reviewTask(cmd.Context(), a, c, args[0], asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.flags(cmd)
	return cmd
}

func listReviews(ctx context.Context, a *cli.App, asJSON bool) error {
	p, err := a.Open(ctx)
	if err != nil {
		return err
	}
	a.Mirror(ctx, p)
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
	a.Mirror(ctx, c.Project)
	r, err := a.Review(ctx, c, id)
	if err != nil {
		return err
	}
	p := r.Page
	if asJSON {
		return a.PrintJSON(p)
	}
	if err := a.Page(ctx, a.ReviewPage(r)); err != nil {
		return err
	}
	if a.Interactive && r.Comments != nil && p.View.Live() {
		if err := review.Look(r); err != nil {
			return err
		}
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
