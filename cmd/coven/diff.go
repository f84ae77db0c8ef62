package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

func newDiff(a *app) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:               "diff TASK",
		Short:             "Show what a task's worktree changes: committed, uncommitted and untracked",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			return a.printDiff(cmd.Context(), &desk{house: h}, args[0], stat)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show the files and the size of their changes only")
	return cmd
}

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

// noDiff says where the change of a task without a worktree is.
func noDiff(v session.View) error {
	switch {
	case v.Commit != "":
		return missing("git show "+v.Commit, "task %s has landed", v.Task)
	case v.Rescue != "":
		return missing("git show "+v.Rescue, "task %s has no worktree any more: it is stored as %s", v.Task, v.Rescue)
	}
	return missing("coven why "+shellWord(v.Task), "task %s has no worktree", v.Task)
}

func (a *app) printStat(files []worktree.FileChange) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, f := range files {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, printable(f.Path), sizeOf(f)) //nolint:errcheck // Flush reports it
	}
	return written(w.Flush())
}

// sizeOf is how much of a file has changed.
func sizeOf(f worktree.FileChange) string {
	if f.Binary {
		return "binary"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
}

// safeDiff keeps a diff from steering the terminal. Tabs stay.
func safeDiff(patch string) string {
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
