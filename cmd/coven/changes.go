package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

func (a *app) printDiff(ctx context.Context, d *desk, id string, stat bool) error {
	v, err := d.house.find(id)
	if err != nil {
		return err
	}
	_, diff, err := d.changeOf(ctx, v)
	if err != nil {
		return err
	}
	if stat {
		return a.printStat(diff.Files)
	}
	return a.say("%s", safeDiff(diff.Patch))
}

// safeDiff keeps a diff from steering the terminal. Tabs stay.
func safeDiff(patch string) string {
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

// sizeOf is how much of a file has changed.
func sizeOf(f worktree.FileChange) string {
	if f.Binary {
		return "binary"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
}

func (a *app) printStat(files []worktree.FileChange) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, f := range files {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, terminal.Printable(f.Path), sizeOf(f)) //nolint:errcheck // Flush reports it
	}
	return written(w.Flush())
}
