// Package doctor implements coven doctor, which prints the findings of internal/doctor.
package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/doctor"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// NewDoctor returns the command coven doctor.
func NewDoctor(a *cli.App) *cobra.Command {
	var fix, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what coven needs, and clean up after a crash",
		Long:  doctorHelp(),
		Example: `  coven doctor
  coven doctor --fix`,
		Args: cobra.NoArgs,
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

--fix restores records of sessions that were removed, as by git clean -fdx, from their
copies in the git directory. It removes claims of sessions that are over or gone and
reopens their tasks, removes the worktrees of such tasks, and deletes files of a coven
that was killed. The content of a worktree is stored under refs/coven/rescue first.
Sessions that can be resumed and git's own locks are left alone.

`)
	for _, c := range doctor.Checkups() {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Name, c.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

// mark returns the first column of a finding.
func mark(state string, color bool) string {
	text := map[string]string{doctor.StateOK: "ok  ", doctor.StateWarn: "warn", doctor.StateFail: "FAIL"}[state]
	code := map[string]string{doctor.StateWarn: "33", doctor.StateFail: "31"}[state] // yellow, red
	if !color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

// summary returns the last line: the number of problems and warnings, and the failed checks.
func summary(found []doctor.Finding) string {
	var failed []string // checks
	fails, warnings := 0, 0
	for _, f := range found {
		switch f.State {
		case doctor.StateWarn:
			warnings++
		case doctor.StateFail:
			fails++
			if !slices.Contains(failed, f.Name) {
				failed = append(failed, f.Name)
			}
		}
	}
	text := "no problems"
	if fails > 0 {
		text = fmt.Sprintf("%s (%s)", oneline.Count(fails, "problem"), strings.Join(failed, ", "))
	}
	if warnings > 0 {
		text += ", " + oneline.Count(warnings, "warning")
	}
	return text + "\n"
}

// tilde replaces the user's home directory with ~ where a path in text begins with it.
func tilde(text, home string) string {
	if home = strings.TrimRight(home, "/"); home == "" {
		return text
	}
	path := regexp.MustCompile(`(^|[\s("'=:])` + regexp.QuoteMeta(home) + `(/|$|[\s)"':;,])`)
	return path.ReplaceAllString(text, "${1}~${2}")
}

// textColumn is the column at which the text of a finding begins.
const textColumn = 18

// printFindings prints each finding with the next command, and a summary.
func printFindings(a *cli.App, found []doctor.Finding) error {
	home := a.Getenv("HOME")
	for _, f := range found {
		text := fmt.Sprintf("%s  %-10s  %s\n", mark(f.State, a.Color()), f.Name, a.Wrap(tilde(terminal.Printable(oneline.Of(f.Text)), home), textColumn))
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
	return a.Printf("\n%s", summary(found))
}
