package worktree

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/prune"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

func newWorktreePrune(a *cli.App) *cobra.Command {
	var r prune.Request
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove worktrees that have landed, and traces of those that are gone",
		Long: `Remove the worktrees of tasks that have landed, if they contain nothing else, and
the registrations and records of worktrees whose directory is gone. What has not
landed, and what belongs to a session that can continue, stays.`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			r.Warn = warn(a)
			if asJSON {
				r.Warn = func(string) {}
			}
			done, err := prune.Run(cmd.Context(), p, r)
			if asJSON && err == nil {
				return a.PrintJSON(done)
			}
			for _, one := range done {
				if printed := a.Printf("%s", prunedText(one, r.DryRun)); printed != nil {
					return printed
				}
			}
			if err != nil || len(done) > 0 {
				return err
			}
			return a.Printf("nothing to prune\n")
		}),
	}
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "only print what would be removed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// warn returns a function that prints a warning.
func warn(a *cli.App) func(string) {
	return func(text string) { _ = a.Showf("warning: %s\n", terminal.PrintableLines(text)) } // nothing else can report the error
}

// prunedText describes the result for one item.
func prunedText(one prune.Item, dryRun bool) string {
	verb := "removed"
	switch {
	case one.Kept != "":
		verb = "kept"
	case dryRun:
		verb = "would remove"
	}
	text := verb + " " + one.Kind + " of " + terminal.Printable(one.Task) + ": " + terminal.Printable(one.Path)
	if one.Rescue != "" {
		text += "; stored as " + one.Rescue
	}
	if one.Kept != "" {
		text += "\n  " + terminal.Printable(one.Kept) + "\n  next: " + terminal.Printable(one.Next)
	}
	return text + "\n"
}
