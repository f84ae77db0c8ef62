package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/session"
)

func newStatus(a *app) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the sessions and what is next for each",
		Long:  "Show every session that is not over, and the last ten that are (--all: every session). It reads the disk: coven need not run.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			views, broken := session.List(h.repo.Root)
			damaged, broken := session.DamagedIn(broken)
			if broken != nil {
				return broken
			}
			for _, d := range damaged {
				views = append(views, damagedView(d))
			}
			if !all {
				views = current(views)
			}
			if asJSON {
				for i := range views {
					next := nextOf(views[i])
					if views[i] = views[i].Shown(); views[i].Status == session.Damaged {
						views[i].Next = next
					}
				}
				return a.sayJSON(views)
			}
			return a.statusTable(views)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show every session")
	return cmd
}

// manyEnded is how many sessions that are over status shows.
const manyEnded = 10

// current leaves out all but the newest sessions that are over.
func current(views []session.View) []session.View {
	kept, ended := []session.View{}, 0
	for _, v := range views {
		if !v.Ended.IsZero() && v.Status != session.Blocked {
			if ended++; ended > manyEnded {
				continue
			}
		}
		kept = append(kept, v)
	}
	return kept
}

func (a *app) statusTable(views []session.View) error {
	if len(views) == 0 {
		return a.say("no sessions yet\n  next: coven run, or coven run -p \"...\"\n")
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTATUS\tSTEP\tTITLE\tNEXT") //nolint:errcheck // Flush reports it
	seen := map[string]bool{}
	for _, v := range views { // the newest first: only that of a task has a next command
		next := nextOf(v)
		if seen[v.Task] {
			next = ""
		}
		seen[v.Task] = true
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", clip(nameOf(v), 30), stateText(v), clip(whereOf(v), 30), clip(v.Info.Query, 40), printable(next)) //nolint:errcheck // Flush reports it
	}
	if err := written(w.Flush()); err != nil {
		return err
	}
	return a.openFindings(views)
}

// openFindings says below the table which sessions wait because of their findings.
func (a *app) openFindings(views []session.View) error {
	for _, v := range views {
		if !heldByFindings(v) {
			continue
		}
		if err := a.say("%s: %s\n", printable(v.Task), printable(findings.Summary(v.Open))); err != nil {
			return err
		}
	}
	return nil
}

// nameOf is the task of a session, or the session where the record does not say.
func nameOf(v session.View) string {
	if v.Task == "" {
		return v.ID
	}
	return v.Task
}

// whereOf is where a session is, or what is wrong with its record.
func whereOf(v session.View) string {
	if v.Status == session.Damaged {
		return "see: coven doctor"
	}
	return v.At()
}

// clip makes a text one printable line of at most n characters.
func clip(text string, n int) string {
	runes := []rune(printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}
