package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/collisions"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// StatusTable prints sessions, newest first. On a terminal, it fits the width and shortens IDs; otherwise
// it shortens nothing.
func (a *App) StatusTable(views []session.View, short map[string]string) error {
	if !a.Terminal {
		short = nil
	}
	width, now := a.width(), a.Now()
	title, next := &column{cells: []string{"TITLE"}}, &column{cells: []string{"DOING / NEXT"}}
	id, state, age, cost := &column{cells: []string{"TASK"}}, &column{cells: []string{"STATUS"}}, &column{cells: []string{"AGE"}}, &column{cells: []string{"COST"}}
	seen, longest := map[string]bool{}, 0
	for _, v := range views { // only the newest session of a task has a next command
		command := ""
		if !seen[v.Task] {
			command = shortNext(v, short)
		}
		seen[v.Task] = true
		longest = max(longest, ansi.StringWidth(command))
		id.add(cmp.Or(short[v.Task], v.Task, v.ID))
		state.add(control.StateOf(v))
		age.add(terminal.Age(now.Sub(control.StateSince(v))))
		cost.add(costText(v))
		title.add(oneline.Of(v.Info.Query))
		next.add(cmp.Or(actionText(v, now), command, resultText(v)))
	}
	if a.Color() {
		state.color = func(row int) string { return stateColor(views, row) }
	}
	columns := []*column{id, state, age, cost, title, next}
	lines := tableLines(width, columns, shrink{title, minTitle}, shrink{next, max(longest, minTitle)}, shrink{title, 0}, shrink{next, 0})
	if err := a.Printf("%s\n", strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := a.collisions(views, short, width); err != nil {
		return err
	}
	return a.openFindings(views, short, width)
}

// collisions lists the predicted conflicts between tasks.
func (a *App) collisions(views []session.View, short map[string]string, width int) error {
	for _, v := range views {
		for _, c := range v.Collisions {
			c.Task = cmp.Or(short[c.Task], c.Task)
			text := cmp.Or(short[v.Task], v.Task) + ": " + collisions.Text(c)
			if err := a.Printf("%s\n", cut(text, width)); err != nil {
				return err
			}
		}
	}
	return nil
}

// minTitle is the width to which the title shrinks before other columns do.
const minTitle = 24

func (c *column) add(cell string) { c.cells = append(c.cells, cell) }

// width returns the maximum width of lines, or 0 for no limit if the output is not a terminal.
func (a *App) width() int {
	if !a.Terminal {
		return 0
	}
	width, _ := a.Size()
	return width
}

// openFindings lists the sessions that wait because of their findings, below the table.
func (a *App) openFindings(views []session.View, short map[string]string, width int) error {
	for _, v := range views {
		if !control.HasOpenErrors(v) {
			continue
		}
		text := cmp.Or(short[v.Task], v.Task) + ": " + findings.Summary(v.Open)
		if err := a.Printf("%s\n", cut(text, width)); err != nil {
			return err
		}
	}
	return nil
}

// cut returns a text as one printable line of at most width columns. A width of 0 means no limit.
func cut(text string, width int) string {
	text = terminal.Printable(text)
	if width > 0 {
		return ansi.Truncate(text, width, "…")
	}
	return text
}

// shortNext returns the next command for a session, with the short form of its task, which also names its newest chat.
func shortNext(v session.View, short map[string]string) string {
	next := control.NextOf(v)
	id := short[v.Task]
	switch {
	case id == "":
		return next
	case next == control.ChatCommand(v.ID):
		return control.ChatCommand(id)
	}
	return strings.TrimSpace(strings.Replace(next+" ", " "+shellword.Word(v.Task)+" ", " "+shellword.Word(id)+" ", 1))
}

// actionText returns the current action of a running session, or "" if there is none.
func actionText(v session.View, now time.Time) string {
	step, action := control.Doing(v)
	switch {
	case v.Status == session.Running && v.Parked != nil:
		return "continues at " + terminal.Clock(v.Parked.At, now)
	case step == "":
		return ""
	}
	return step + terminal.Colon(action)
}

// resultText returns the result of a completed session.
func resultText(v session.View) string {
	switch {
	case v.Status != session.Completed:
		return ""
	case v.Commit == "":
		return "nothing changed"
	}
	return fmt.Sprintf("landed %.10s", v.Commit)
}

// costText returns the cost of a session, or "" if no usage is known.
func costText(v session.View) string {
	if v.Used.USD == 0 && v.Usage.Tokens() == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", v.Used.USD)
}

// stateColor returns the color of a state in a row of the table of views.
func stateColor(views []session.View, row int) string {
	if row == 0 {
		return ""
	}
	v := views[row-1].Shown()
	if v.Rejected {
		return ""
	}
	return statusColor(v.Status, v.Reason)
}

// statusColor returns the SGR code of the color of a state, or "".
func statusColor(status event.Status, reason event.WaitReason) string {
	switch status {
	case session.Running:
		return "36" // cyan
	case session.Completed:
		return terminal.Green
	case session.Waiting:
		if reason == event.WaitLimit {
			return ""
		}
		return terminal.Yellow // a person can do something
	case session.Interrupted:
		return terminal.Yellow
	case session.Failed, session.Blocked, session.Damaged, session.Gone:
		return terminal.Red
	}
	return ""
}
