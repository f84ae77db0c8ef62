// Package board arranges the tasks of a repository by whether they need a person. The faces show it: package tui does so on a
// terminal.
package board

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/collisions"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Section is a part of the board.
type Section int

// The sections, in the order of their importance for a person.
const (
	NeedsYou Section = iota // does not go on without a person
	Running
	Waiting // goes on by itself, or with the next run
	Landed  // today
	sections
)

// String returns the heading of the section.
func (s Section) String() string {
	return [sections]string{"Needs you", "Running", "Waiting", "Landed today"}[s]
}

// Card is a task on the board. All texts are single lines without control characters.
type Card struct {
	Section Section
	Task    string // ID
	Short   string // unique prefix of the ID
	Title   string
	State   string // such as "waiting (review)", or "ready"
	Text    string // the question, the current action, the reason for waiting, or the result
	Next    string // the next command; empty if there is none
	Cost    float64
	Since   time.Time // when it came into its state; zero if it has not begun

	Snoozed bool      // a person snoozed its question
	Wakes   time.Time // when the snooze ends; zero if the time does not end it

	View session.View // zero if it has not begun
}

// Conflicts describes the predicted conflicts with other tasks, one per line.
func (c Card) Conflicts() (lines []string) {
	for _, one := range c.View.Collisions {
		lines = append(lines, line(collisions.Text(one)))
	}
	return lines
}

// Begun reports whether the task has a session.
func (c Card) Begun() bool { return c.View.ID != "" }

// of returns the cards of a repository, ordered by section. In each, the latest is first, except that tasks without a session
// are last, in the order in which they will run. unserved has the sessions that wait for workers in vain, by ID.
func of(ctx context.Context, p *project.Project, now time.Time, unserved map[string]reason) ([]Card, error) {
	o, err := control.OverviewOf(ctx, p, false)
	if err != nil {
		return nil, err
	}
	cards, seen := []Card{}, map[string]bool{}
	for _, v := range o.Sessions { // newest first
		c := cardOf(v, o.Short, now).because(unserved).sleep(now)
		if isShown(v, now) && !seen[v.Task] {
			cards = append(cards, c)
		}
		seen[v.Task] = true
	}
	for _, t := range o.Ready {
		cards = append(cards, Card{Section: Waiting, Task: t.ID, Short: cmp.Or(o.Short[t.ID], t.ID), Title: line(t.Title), State: "ready", Text: "begins with the next run", Next: "coven run " + t.ID})
	}
	for _, w := range o.Waiting {
		cards = append(cards, Card{Section: Waiting, Task: w.ID, Short: cmp.Or(o.Short[w.ID], w.ID), Title: line(w.Title), State: "waiting", Text: "after " + line(strings.Join(w.For, ", "))})
	}
	slices.SortStableFunc(cards, func(a, b Card) int { return cmp.Compare(a.Section, b.Section) })
	return cards, nil
}

// isShown reports whether a session is on the board: it is open, or was completed today.
func isShown(v session.View, now time.Time) bool {
	switch {
	case v.Status == session.Cancelled, v.Rejected:
		return false
	case v.Status == session.Completed:
		return v.Ended.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly)
	}
	return true
}

func cardOf(v session.View, short map[string]string, now time.Time) Card {
	c := Card{
		Section: sectionOf(v), Task: v.Task, Short: cmp.Or(short[v.Task], v.Task), Title: line(v.Info.Query), State: control.StateOf(v),
		Next: control.NextOf(v.Shown()), Cost: v.Used.USD, Since: control.StateSince(v), View: v,
	}
	switch shown := v.Shown(); c.Section {
	case Running:
		step, action := control.Doing(v)
		c.Text = strings.Join(append(c.Conflicts(), line(step+terminal.Colon(action))), "; ")
	case Waiting:
		c.Text = line(control.DetailOf(shown))
		if !shown.Until.IsZero() {
			c.Text = strings.TrimPrefix(c.Text+", continues at "+terminal.Clock(shown.Until, now), ", ")
		}
	case Landed:
		c.Text = "nothing changed"
		if v.Commit != "" {
			c.Text = line("landed " + v.Commit[:min(len(v.Commit), 10)] + terminal.Colon(v.Summary))
		}
	default:
		c.Text = line(control.DetailOf(shown))
	}
	return c
}

// reason is why a session waits for workers in vain, and the command for a machine that can run it.
type reason struct{ text, next string }

// because returns the card of a session that waits in vain if it is among unserved.
func (c Card) because(unserved map[string]reason) Card {
	if why, ok := unserved[c.View.ID]; ok && c.View.WaitsForWorker() {
		c.Section, c.Text, c.Next = NeedsYou, line(why.text), line(why.next)
	}
	return c
}

func sectionOf(v session.View) Section {
	switch v = v.Shown(); {
	case v.Status == session.Running:
		return Running
	case v.Status == session.Waiting && slices.Contains([]event.WaitReason{event.WaitLimit, event.WaitDependency, event.WaitWorker}, v.Reason):
		return Waiting
	case v.Status == session.Completed:
		return Landed
	}
	return NeedsYou
}

func line(text string) string { return terminal.Printable(oneline.Of(text)) }
