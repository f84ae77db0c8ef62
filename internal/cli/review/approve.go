package review

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
)

// NewApprove returns the command coven approve.
func NewApprove(a *cli.App) *cobra.Command {
	var all, accept bool
	var message string
	cmd := &cobra.Command{
		Use:   "approve [TASK...] [--all]",
		Short: "Approve changes that wait for review, and land them",
		Long: `Approve changes that wait for review, and land them one after the other. A change
with open error findings lands only with --accept-findings: the record says who
accepted which. coven review TASK shows them.

--message replaces the message of the commit that lands. With it, a change can also be
approved whose landing is blocked because a commit-msg hook refused the message.

--all approves every change that waits for review, the oldest first. Changes with open
error findings are named and skipped.`,
		Example: `  coven approve bd-12
  coven approve bd-12 bd-13
  coven approve --all
  coven approve bd-12 --message "feat: rotate the log"`,
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return exit.Usagef("coven approve --help", "give tasks or --all, not both")
			case !all && len(args) == 0:
				return exit.Usagef("coven review", "missing TASK: coven approve TASK..., or coven approve --all")
			case message != "" && len(args) != 1:
				return exit.Usagef("coven approve --help", "--message is for one task")
			case len(args) == 1:
				return a.WithController(cmd.Context(), func(c *control.Controller) error {
					return cli.ExitStatus(c.Approve(cmd.Context(), control.ApproveRequest{Task: args[0], AcceptFindings: accept, Message: message}))
				})
			}
			return approveSeveral(cmd.Context(), a, args, accept)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "approve every change that waits for review")
	cmd.Flags().StringVarP(&message, "message", "m", "", "land with this commit message, as `TEXT`")
	cmd.Flags().BoolVar(&accept, "accept-findings", false, "land in spite of open error findings")
	return cmd
}

// approveSeveral approves the changes of the named tasks, or without names all that wait.
func approveSeveral(ctx context.Context, a *cli.App, names []string, accept bool) error {
	c, err := a.Controller(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	todo, err := c.ToApprove(ctx, names, accept)
	if err != nil {
		return err
	}
	a.PrintDamaged(todo.Damaged)
	if len(todo.Requests)+len(todo.Skipped) == 0 {
		return a.Printf("no change is waiting for review\n  next: coven status\n")
	}
	defer a.WatchEnds(c)()
	code := exit.OK
	for _, r := range todo.Requests {
		err := cli.ExitStatus(c.Approve(ctx, r))
		a.ShowError(err)
		code = exit.Worse(code, exit.Code(err))
		if ctx.Err() != nil {
			return exit.Status(exit.Worse(code, exit.Interrupted))
		}
	}
	for _, v := range todo.Skipped {
		code = exit.Worse(code, exit.Person)
		if err := a.Showf("%s", cli.SkippedText(v)); err != nil {
			return err
		}
	}
	return exit.Status(code)
}
