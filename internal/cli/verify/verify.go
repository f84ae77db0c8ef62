// Package verify holds the command that verifies the receipt of a landed commit.
package verify

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/receipts"
	"github.com/coven-run/coven/internal/control/replay"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

type options struct{ signed, replay, store, json bool }

// NewVerify returns the command coven verify.
func NewVerify(a *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "verify COMMIT",
		Short: "Verify the receipt of a landed commit",
		Long: `Verify the receipt that coven stored when a commit landed: the note in refs/notes/coven,
with the checks that passed on exactly its tree, the reviews and the approval. The
receipt must be about this commit, and its signature must not be bad. If the session
that landed the commit is on this machine, its journal and logs must agree.

To verify the commits of others, fetch their receipts first:
git fetch origin refs/notes/coven:refs/notes/coven

--signed requires a good signature with a key that git knows, and at least one check that
was required. --replay runs the commands again, in the sandbox and in a clean worktree
of exactly that tree that is set up as it was then, and compares their exit codes. It runs
only commands of this repository's configuration or of a receipt with a good signature. --store stores a
receipt that is missing, from the session. The format is described in coven help receipts.`,
		Example: `  coven verify HEAD
  coven verify --signed --json HEAD
  coven verify --replay v1.2.0`,
		Args: cobra.ExactArgs(1),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			return o.run(cmd.Context(), a, p, args[0])
		}),
	}
	cmd.Flags().BoolVar(&o.signed, "signed", false, "require a good signature, and a check that had to pass")
	cmd.Flags().BoolVar(&o.replay, "replay", false, "run the commands again in a clean worktree")
	cmd.Flags().BoolVar(&o.store, "store", false, "store a missing receipt first")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o options) run(ctx context.Context, a *cli.App, p *project.Project, commit string) error {
	if err := control.HideSecrets(p); err != nil {
		return err
	}
	if o.store {
		if err := receipts.StoreOf(ctx, p, commit); err != nil {
			return err
		}
	}
	r, err := receipts.Verify(ctx, p, commit, o.signed)
	if err == nil && o.replay && r.Verified {
		err = a.WithController(ctx, func(c *control.Controller) error { return replay.Run(ctx, c, &r) })
	}
	if err != nil {
		return err
	}
	if err := o.print(a, r); err != nil {
		return err
	}
	if !r.Verified {
		return exit.Status(exit.Failed)
	}
	return nil
}

func (o options) print(a *cli.App, r receipts.Report) error {
	if o.json {
		return a.PrintJSON(r)
	}
	title := fmt.Sprintf("commit %.12s", r.Commit)
	if r.Statement != nil {
		l := r.Statement.Predicate
		title += fmt.Sprintf(": task %s landed on %s (%s)", l.Task, l.Target, l.Strategy)
	}
	if err := a.Printf("%s\n", terminal.Printable(title)); err != nil {
		return err
	}
	for _, p := range r.Points {
		if err := a.Printf("  %-8s %-10s %s\n", p.Result, p.Name, terminal.Printable(p.Detail)); err != nil {
			return err
		}
	}
	end := "verified"
	if !r.Verified {
		end = fmt.Sprintf("not verified\n  next: git show %.12s", r.Commit)
	}
	return a.Printf("%s\n", end)
}
