package sessions

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/archive"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

func newRemove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rm SESSION...", Short: "Remove the records of sessions that are over",
		Long: `Remove the records of sessions that are over, with all that their agents said. A session that can
continue, or that has a worktree, stays. What has landed is in git; the snapshots of a session
that did not land stay until coven gc deletes them.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := openAsPerson(cmd.Context(), a)
			if err != nil {
				return err
			}
			for _, name := range args {
				v, err := p.SessionOf(cmd.Context(), name)
				if err != nil {
					return err
				}
				if err := archive.Remove(cmd.Context(), p, session.SummaryOf(p.Repo.Root, v)); err != nil {
					return err
				}
				if err := a.Printf("removed %s\n", terminal.Printable(v.ID)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// openAsPerson opens the repository, unless an agent of it started this command.
func openAsPerson(ctx context.Context, a *cli.App) (*project.Project, error) {
	p, err := a.Open(ctx)
	if err != nil {
		return nil, err
	}
	return p, control.ByPerson(p)
}

func newClean(a *cli.App) *cobra.Command {
	var r archive.CleanRequest
	var olderThan string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "clean", Short: "Remove the records of sessions that ended long ago",
		Long: `Remove the records of sessions that ended long ago, as coven sessions rm does. A session that can
continue, or that has a worktree, stays.`,
		Example: `  coven sessions clean --older-than 30d --dry-run
  coven sessions clean --older-than 2w --keep-failed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := ageOf(olderThan)
			if err != nil {
				return err
			}
			p, err := openAsPerson(cmd.Context(), a)
			if err != nil {
				return err
			}
			r.Before = p.Env.Now().Add(-age)
			done, err := archive.Clean(cmd.Context(), p, r)
			if asJSON && err == nil {
				return a.PrintJSON(done)
			}
			for _, one := range done {
				if printed := a.Printf("%s\n", cleanedText(one, r.DryRun)); printed != nil {
					return printed
				}
			}
			if err != nil || len(done) > 0 {
				return err
			}
			return a.Printf("no session is that old\n")
		},
	}
	f := cmd.Flags()
	f.StringVar(&olderThan, "older-than", "", "remove sessions that ended this `AGE` ago: 12h, 30d, 2w")
	f.BoolVar(&r.DryRun, "dry-run", false, "only print what would be removed")
	f.BoolVar(&r.KeepFailed, "keep-failed", false, "keep sessions that did not complete")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func cleanedText(one archive.Cleaned, dryRun bool) string {
	text := one.Session + " (" + one.Status + ", ended " + one.Ended.Local().Format(time.DateOnly) + ")"
	switch {
	case one.Kept != "":
		text = "kept " + text + ": " + one.Kept
	case dryRun:
		text = "would remove " + text
	default:
		text = "removed " + text
	}
	return terminal.Printable(text)
}

// ageOf parses the value of --older-than.
func ageOf(text string) (time.Duration, error) {
	if age, ok := cli.Age(text); ok {
		return age, nil
	}
	return 0, exit.Usagef("coven sessions clean --older-than 30d", "--older-than %q is no age: 12h, 30d or 2w", text)
}
