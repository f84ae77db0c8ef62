// Package worktree implements coven worktree, which lists, prunes and removes the worktrees of tasks.
package worktree

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/prune"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

// NewWorktree returns the command coven worktree.
func NewWorktree(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "worktree", Short: "List, prune and remove the worktrees of tasks",
	}, newWorktreeList(a), newWorktreePath(a), newWorktreePrune(a), newWorktreeRemove(a))
}

func newWorktreeList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the worktrees of tasks", Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			trees, err := p.Worktrees(cmd.Context())
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
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newWorktreePath(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "path TASK", Short: "Print the directory of a task's worktree",
		Example: `  cd "$(coven worktree path TASK)"`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Treed),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			dir, err := p.Worktree(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Printf("%s\n", dir)
		}),
	}
}

func newWorktreeRemove(a *cli.App) *cobra.Command {
	var r prune.RemoveRequest
	cmd := &cobra.Command{
		Use:               "remove TASK",
		Short:             "Store the unlanded work of a worktree, then remove it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Treed),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			r.Task, r.Warn = args[0], warn(a)
			ref, err := prune.Remove(cmd.Context(), p, r)
			if err != nil {
				return err
			}
			return a.Printf("removed%s\n", stored(ref))
		}),
	}
	cli.RemoveFlags(cmd, &r.Ignored)
	return cmd
}

func stored(ref string) string {
	if ref == "" {
		return "; everything in it had landed"
	}
	return "; stored as " + ref
}
