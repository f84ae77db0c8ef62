package page

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/project"
)

// NewOpen returns the command coven open.
func NewOpen(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "open TASK", Short: "Open a task's worktree in your editor",
		Long: `Open the directory of a task's worktree in your editor: $VISUAL or $EDITOR. Without a terminal, or if
neither is set, print the directory.`,
		Example: `  coven open bd-12`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Treed),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			dir, err := p.Worktree(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if opened, err := a.OpenInEditor(cmd.Context(), dir); opened || err != nil {
				return err
			}
			return a.Printf("%s\n", dir)
		}),
	}
}
