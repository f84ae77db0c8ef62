package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/terminal"
)

// PrintDiff prints what a task's worktree changes, or with stat only the files.
func (a *App) PrintDiff(ctx context.Context, c *control.Controller, id string, stat bool) error {
	diff, err := c.Diff(ctx, id)
	if err != nil {
		return err
	}
	if stat {
		return a.printStat(diff.Files)
	}
	return a.Printf("%s", SafeDiff(diff.Patch))
}

// SafeDiff makes the control characters of a diff visible, except for tabs.
func SafeDiff(patch string) string {
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = terminal.Printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// SizeOf returns how much of a file has changed.
func SizeOf(f control.FileChange) string {
	if f.Binary {
		return "binary"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
}

func (a *App) printStat(files []control.FileChange) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for _, f := range files {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, terminal.Printable(f.Path), SizeOf(f)) //nolint:errcheck // Flush reports it
	}
	return WriteError(w.Flush())
}
