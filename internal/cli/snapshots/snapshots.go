// Package snapshots implements coven snapshots and coven revert, which list the saved states of a worktree
// and restore them.
package snapshots

import (
	"cmp"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/snapshot"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// snapshotJSON is a snapshot as --json prints it.
type snapshotJSON struct {
	N       int       `json:"n"`
	Commit  string    `json:"commit"`
	Tree    string    `json:"tree"`
	Time    time.Time `json:"time"`
	Note    string    `json:"note"`
	Changed []string  `json:"changed"`
}

// NewSnapshots returns the command coven snapshots.
func NewSnapshots(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "snapshots TASK|SESSION", Short: "List the saved states of a task's worktree, oldest first",
		Long: `List the saved states of a task's worktree, oldest first, with the number of files that
each changed.

coven saves the worktree at the start of each step and before each tool call of an agent
that can change files. coven revert restores a snapshot.`,
		Example: "  coven snapshots bd-12\n  git diff refs/coven/snapshots/SESSION~1 refs/coven/snapshots/SESSION",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			all, err := snapshot.Of(cmd.Context(), p, args[0])
			if err != nil {
				return err
			}
			return list(a, all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func list(a *cli.App, all []snapshot.State, asJSON bool) error {
	if asJSON {
		out := []snapshotJSON{}
		for _, s := range all {
			out = append(out, snapshotJSON{s.N, s.Commit, s.Tree, s.Time.UTC(), s.Note, append([]string{}, s.Changed...)})
		}
		return a.PrintJSON(out)
	}
	if len(all) == 0 {
		return a.Printf("there are no snapshots\n")
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for i, s := range all {
		changed := ""
		if i > 0 {
			changed = oneline.Count(len(s.Changed), "file")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", s.N, s.Time.Local().Format("2006-01-02 15:04:05"), changed, terminal.Clip(s.Note, 80)) //nolint:errcheck // Flush reports it
	}
	return cli.WriteError(w.Flush())
}

// NewRevert returns the command coven revert.
func NewRevert(a *cli.App) *cobra.Command {
	var r snapshot.Request
	cmd := &cobra.Command{
		Use: "revert TASK [N]", Short: "Restore the files of a task's worktree from a snapshot",
		Long: `Restore the files of a task's worktree from snapshot N of coven snapshots, or from the
newest snapshot with other files: a second coven revert undoes the first. Files that were
created later are removed. The branch, its commits and ignored files stay as they are.

The state before is saved as a snapshot, so nothing is lost; with --path FILE, that of the
file: restoring it restores this file only. An agent that works on the task must end first.`,
		Example: "  coven revert bd-12\n  coven revert bd-12 3\n  coven revert bd-12 3 --path src/app.ts",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Name = args[0]
			if len(args) == 2 {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 {
					return exit.Usagef("coven snapshots "+shellword.Word(args[0]), "%q is not the number of a snapshot", args[1])
				}
				r.N = n
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			done, err := snapshot.Revert(cmd.Context(), p, r)
			if err != nil {
				return err
			}
			return a.Printf("%s", text(done))
		},
	}
	cmd.Flags().StringArrayVar(&r.Paths, "path", nil, "restore only this file or directory, a `PATH` in the repository (repeatable)")
	return cmd
}

// text describes the result of a revert, and how to undo it.
func text(done snapshot.Reverted) string {
	note := cmp.Or(done.To.Note, "no note")
	if len(done.Changed) == 0 {
		return fmt.Sprintf("task %s has the files of snapshot %d already (%s)\n", terminal.Printable(done.Task), done.To.N, terminal.Clip(note, 60))
	}
	return fmt.Sprintf("reverted %s of task %s to snapshot %d (%s); to undo this: coven revert %s %d\n",
		oneline.Count(len(done.Changed), "file"), terminal.Printable(done.Task), done.To.N, terminal.Clip(note, 60), shellword.Word(done.Task), done.Undo.N)
}
