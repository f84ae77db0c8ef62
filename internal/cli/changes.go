package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/cli/reviewpage"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/terminal"
)

// PrintDiff prints the change in a task's worktree, or with stat only its files.
func (a *App) PrintDiff(ctx context.Context, c *control.Controller, id string, stat bool) error {
	diff, err := c.Diff(ctx, id)
	if err != nil {
		return err
	}
	if stat {
		return a.printStat(diff.Files)
	}
	return a.Printf("%s", reviewpage.Diff(diff.Patch, false))
}

func (a *App) printStat(files []control.FileChange) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, f := range files {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, terminal.Printable(f.Path), reviewpage.SizeOf(f)) //nolint:errcheck // Flush reports it
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("format the files: %w", err)
	}
	return a.Printf("%s", text.String())
}

// ReviewPage returns the page of a change, wrapped for the terminal.
func (a *App) ReviewPage(p control.Page) string {
	return reviewpage.Text(reviewpage.Fit(p, a.width()), a.Color())
}
