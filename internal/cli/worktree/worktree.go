// Package worktree is coven worktree: it lists and removes the worktrees of tasks.
package worktree

import (
	"cmp"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

// NewWorktree returns the command coven worktree.
func NewWorktree(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "worktree", Short: "List and remove the worktrees of tasks",
		Args: cli.NoCommand, RunE: cli.ShowHelp, SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newWorktreeList(a), newWorktreeRemove(a))
	return cmd
}

func newWorktreeList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the worktrees of tasks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			trees, err := p.Repo.Worktrees(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(trees)
			}
			w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
			for _, t := range trees {
				fmt.Fprintf(w, "%s\t%s\t%.10s\t%s\n", terminal.Clip(cmp.Or(t.TaskID, t.Name), 40), t.Branch, t.Tip, t.Path) //nolint:errcheck // Flush reports it
			}
			return cli.WriteError(w.Flush())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newWorktreeRemove(a *cli.App) *cobra.Command {
	req := worktree.RemoveRequest{Note: "coven worktree remove"}
	cmd := &cobra.Command{
		Use:               "remove TASK",
		Short:             "Store the unlanded work of a worktree, then remove it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Treed),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			if err := idle(p, args[0]); err != nil {
				return err
			}
			tree, err := p.Repo.Leftover(cmd.Context(), args[0])
			if errors.Is(err, worktree.ErrNoWorktree) {
				return exit.Failedf("coven worktree list", "task %s has no worktree", args[0])
			}
			if err != nil {
				return err
			}
			ref, err := tree.Remove(cmd.Context(), req)
			if err != nil {
				return tooBig(err)
			}
			return a.Printf("removed%s\n", stored(ref))
		},
	}
	cmd.Flags().BoolVar(&req.KeepBig, "keep-big", false, "store ignored files of any size")
	cmd.Flags().BoolVar(&req.DropIgnored, "drop-ignored", false, "delete ignored files that are too large to store")
	return cmd
}

// idle returns an error if a session still needs the task's worktree.
func idle(p *project.Project, id string) error {
	v, err := session.OfTask(p.Repo.Root, id)
	switch {
	case errors.Is(err, session.ErrNone):
		return nil
	case err != nil:
		return err
	case v.Live():
		return exit.Personf("coven reject "+shellword.Word(id)+" --reason TEXT", "task %s is %s: its session needs the worktree", id, control.StateOf(v))
	}
	return nil
}

func stored(ref string) string {
	if ref == "" {
		return "; everything in it had landed"
	}
	return "; stored as " + ref
}

// tooBig adds what to do to an error about ignored files.
func tooBig(err error) error {
	if big := (*worktree.IgnoredError)(nil); errors.As(err, &big) {
		return exit.Personf("add --keep-big to store them, or --drop-ignored to delete them", "%w", err)
	}
	return err
}
