package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// StatusTable prints sessions, the newest first.
func (a *App) StatusTable(views []session.View) error {
	if len(views) == 0 {
		return a.Printf("no sessions yet\n  next: coven run, or coven run -p \"...\"\n")
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTATUS\tSTEP\tTITLE\tNEXT") //nolint:errcheck // Flush reports it
	seen := map[string]bool{}
	for _, v := range views { // only the newest session of a task has a next command
		next := control.NextOf(v)
		if seen[v.Task] {
			next = ""
		}
		seen[v.Task] = true
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", terminal.Clip(nameOf(v), 30), control.StateOf(v), terminal.Clip(whereOf(v), 30), terminal.Clip(v.Info.Query, 40), terminal.Printable(next)) //nolint:errcheck // Flush reports it
	}
	if err := WriteError(w.Flush()); err != nil {
		return err
	}
	return a.openFindings(views)
}

// openFindings lists the sessions that wait because of their findings, below the table.
func (a *App) openFindings(views []session.View) error {
	for _, v := range views {
		if !control.HasOpenErrors(v) {
			continue
		}
		if err := a.Printf("%s: %s\n", terminal.Printable(v.Task), terminal.Printable(findings.Summary(v.Open))); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the task of a session, or the session's ID if the task is unknown.
func nameOf(v session.View) string {
	if v.Task == "" {
		return v.ID
	}
	return v.Task
}

// whereOf returns the step that a session is at.
func whereOf(v session.View) string {
	if v.Status == session.Damaged {
		return "see: coven doctor"
	}
	return v.At()
}
