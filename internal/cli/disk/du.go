// Package disk holds the commands about coven's disk usage.
package disk

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/storage"
	"github.com/coven-run/coven/internal/terminal"
)

// NewDu returns the command coven du.
func NewDu(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "du", Short: "Show what coven takes on disk", Args: cobra.NoArgs,
		Long: `Show what coven takes on disk, the largest first, with the command that frees each: the
worktrees of tasks and their caches, sessions and their logs, snapshots, rescues, and
coven's own records.

Sizes of snapshots and rescues are estimates (~): those of the git objects that no
branch or tag has. A file with several names counts once, links are not followed, and
nothing is changed.`,
		Example: "  coven du\n  coven du --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			d, err := storage.Measure(cmd.Context(), p)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(d)
			}
			return printDisk(a, d)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printDisk(a *cli.App, d storage.Use) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for _, item := range d.Items {
		about := ""
		if item.Approximate {
			about = "~"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", about+size(item.Bytes), itemName(item), terminal.Clip(cmp.Or(item.Error, item.State), 60), item.Next) //nolint:errcheck // Flush reports it
	}
	fmt.Fprintf(w, "%s\ttotal\t\t\n", size(d.Bytes)) //nolint:errcheck // Flush reports it
	if err := w.Flush(); err != nil {
		return cli.WriteError(err)
	}
	if d.Unread > 0 {
		return a.Printf("%d files or directories cannot be read and are not counted\n", d.Unread)
	}
	return nil
}

// itemName returns the name of an item in the output.
func itemName(item storage.Item) string {
	switch {
	case item.Task != "":
		return item.Kind + " " + terminal.Clip(item.Task, 40)
	case item.Count > 0:
		return fmt.Sprintf("%s (%d)", item.Kind, item.Count)
	}
	return item.Kind
}

// size returns a number of bytes for people: 840 B, 1.2 GB.
func size(bytes int64) string {
	const step = 1000
	if bytes < step {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/step, []string{"kB", "MB", "GB", "TB"}
	for value >= step-0.5 && len(units) > 1 {
		value, units = value/step, units[1:]
	}
	text := fmt.Sprintf("%.0f", value)
	if value < 9.95 {
		text = strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
	}
	return text + " " + units[0]
}
