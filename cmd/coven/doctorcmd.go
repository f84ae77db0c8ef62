package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/spf13/cobra"
)

func newDoctor(a *app) *cobra.Command {
	var fix, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what coven needs, and what a crash left; --fix clears that away",
		Long:  doctorHelp(),
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := newVisit(cmd.Context(), a.env, a.parking)
			found, err := v.examine(cmd.Context(), fix)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.sayJSON(found)
			} else {
				err = a.sayFindings(found)
			}
			if err == nil && slices.ContainsFunc(found, func(f finding) bool { return f.State == stateFail }) {
				err = exit.Status(exit.Failed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "repair what can be repaired without losing anything, and say what was done")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func doctorHelp() string {
	var b strings.Builder
	b.WriteString(`Check what coven needs and what it left behind. A line that begins with FAIL is
in the way of a run, one with warn is good to know; each has the command that
helps.

--fix takes away what nobody needs: claims of sessions that are over or gone,
whose tasks are free again, worktrees of such tasks, files of a coven that was
killed. What is in a worktree is stored under refs/coven/rescue first. What
belongs to a session that can go on is not touched, nor a lock of git's.

`)
	for _, c := range checkups() {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.name, c.about)
	}
	return strings.TrimRight(b.String(), "\n")
}

// sayFindings prints a line for each finding, and what to do about it.
func (a *app) sayFindings(found []finding) error {
	for _, f := range found {
		mark := map[string]string{stateOK: "ok", stateWarn: "warn", stateFail: "FAIL"}[f.State]
		text := fmt.Sprintf("%-4s  %-10s  %s\n", mark, f.Name, terminal.Printable(oneline.Of(f.Text)))
		if f.Fixed != "" {
			text += "      fixed: " + terminal.Printable(oneline.Of(f.Fixed)) + "\n"
		}
		if f.Next != "" {
			text += "      next: " + terminal.Printable(f.Next) + "\n"
		}
		if err := a.say("%s", text); err != nil {
			return err
		}
	}
	return nil
}
