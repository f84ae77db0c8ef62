package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/cli/reviewpage"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
)

// PrintDiff prints a difference, or with stat only its files.
func (a *App) PrintDiff(diff control.Diff, stat bool) error {
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

// Review returns the review of a task. If the file with the comments is damaged, it shows the error, and the review has none.
func (a *App) Review(ctx context.Context, c *control.Controller, task string) (r review.Review, err error) {
	r, err = review.Of(ctx, c, task)
	var damaged *review.DamagedError
	if errors.As(err, &damaged) {
		a.ShowError(err)
		r.Page, err = c.Page(ctx, task)
	}
	return r, err
}

// ReviewPage returns the page of a change, wrapped for the terminal.
func (a *App) ReviewPage(r review.Review) string {
	r.Page = reviewpage.Fit(r.Page, a.width())
	return reviewpage.Text(r, a.Color())
}
