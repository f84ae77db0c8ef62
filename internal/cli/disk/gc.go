package disk

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/storage"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// NewGC returns the command coven gc.
func NewGC(a *cli.App) *cobra.Command {
	var dryRun, asJSON, auto bool
	cmd := &cobra.Command{
		Use: "gc", Short: "Delete old snapshots of what has landed, and pack git objects", Args: cobra.NoArgs,
		Long: `Delete the snapshots of sessions that landed longer ago than the setting gc.keep says
(30 days), or whose directory you removed, and pack loose git objects and refs.

Snapshots of sessions that did not land are kept, and so is everything under
refs/coven/rescue/. Git objects that no ref has any longer, also those of deleted
snapshots, stay until git gc deletes them: coven gc deletes no objects. It does nothing
while a task runs.

With --auto, it does so at most once a day and prints nothing. coven starts that by itself
after the last task has ended, unless the setting gc.auto is false. If there are many loose
objects or packs, it packs them before that, also while tasks run.

Two other commands tidy up, and lose nothing either: coven worktree prune removes worktrees
and branches of tasks that have landed or were cancelled, and coven doctor --fix what a
crash left behind.`,
		Example: "  coven gc --dry-run\n  coven gc",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if auto && (dryRun || asJSON) {
				return exit.Usagef("coven gc --auto", "--auto prints nothing: it goes with neither --dry-run nor --json")
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			if auto {
				return storage.CollectAuto(cmd.Context(), p)
			}
			c, err := storage.Collect(cmd.Context(), p, dryRun)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(c)
			}
			return printCollection(a, c, p.Config.GC.Keep)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only list what would be deleted")
	cmd.Flags().BoolVar(&auto, "auto", false, "only if it is due, and quietly")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printCollection(a *cli.App, c storage.Collection, keep time.Duration) error {
	did := "expired"
	if c.DryRun {
		did = "would expire"
	}
	text := fmt.Sprintf("%s the snapshots of %s older than %s\n", did, oneline.Count(len(c.Expired), "session"), days(keep))
	if len(c.Expired) == 0 {
		text = fmt.Sprintf("no snapshots to expire: of what has landed, none is older than %s\n", days(keep))
	}
	if err := a.Printf("%s", text); err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for _, e := range c.Expired {
		fmt.Fprintf(w, "  %s\t%s %s\n", terminal.Clip(e.Session, 60), e.Reason, e.Since.Local().Format(time.DateOnly)) //nolint:errcheck // Flush reports it
	}
	if err := w.Flush(); err != nil || c.DryRun {
		return cli.WriteError(err)
	}
	return a.Printf("loose git objects: %d, before %d\n", c.LooseNow, c.Loose)
}

// days returns a duration for people.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
