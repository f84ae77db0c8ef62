// Package doctor is coven doctor: it prints what package internal/doctor finds.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/doctor"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/terminal"
)

// NewDoctor returns the command coven doctor.
func NewDoctor(a *cli.App) *cobra.Command {
	var fix, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what coven needs and what a crash left behind; --fix cleans up",
		Long:  doctorHelp(),
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := doctor.Open(cmd.Context(), a.Environment, a.Park)
			found, err := v.Run(cmd.Context(), fix)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(found)
			} else {
				err = printFindings(a, found)
			}
			if err == nil && slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.State == doctor.StateFail }) {
				err = exit.Status(exit.Failed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "repair what can be repaired without losing anything")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func doctorHelp() string {
	var b strings.Builder
	b.WriteString(`Check what coven needs and what it left behind. FAIL marks a problem that prevents
a run, warn one that does not; each names the command that helps.

--fix removes claims of sessions that are over or gone and reopens their tasks,
removes the worktrees of such tasks, and deletes files of a coven that was killed.
The content of a worktree is stored under refs/coven/rescue first. Sessions that can
be resumed and git's own locks are left alone.

`)
	for _, c := range doctor.Checkups() {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Name, c.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

// printFindings prints each finding and the next command.
func printFindings(a *cli.App, found []doctor.Finding) error {
	for _, f := range found {
		mark := map[string]string{doctor.StateOK: "ok", doctor.StateWarn: "warn", doctor.StateFail: "FAIL"}[f.State]
		text := fmt.Sprintf("%-4s  %-10s  %s\n", mark, f.Name, terminal.Printable(oneline.Of(f.Text)))
		if f.Fixed != "" {
			text += "      fixed: " + terminal.Printable(oneline.Of(f.Fixed)) + "\n"
		}
		if f.Next != "" {
			text += "      next: " + terminal.Printable(f.Next) + "\n"
		}
		if err := a.Printf("%s", text); err != nil {
			return err
		}
	}
	return nil
}
