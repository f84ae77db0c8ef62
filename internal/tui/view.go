package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// wide is the width from which the selected task is described beside the list, and below it otherwise.
const wide = 100

// Styles of text. With NO_COLOR, package tea leaves out the colors.
const (
	bold, dim, invert, red, green, yellow, plain = "\x1b[1m", "\x1b[2m", "\x1b[7m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[m"
)

func styled(style, text string) string { return style + text + plain }

func printable(text string) string { return terminal.Printable(oneline.Of(text)) }

// View implements tea.Model.
func (m Model) View() tea.View {
	view := tea.NewView(strings.Join(m.lines(), "\n"))
	view.AltScreen, view.WindowTitle = true, "coven"
	return view
}

// lines returns the whole screen, one string for each row.
func (m *Model) lines() []string {
	if m.width == 0 || m.height == 0 {
		return nil
	}
	room := max(m.height-3, 1)
	var body []string
	switch m.pane {
	case helpPane:
		body = m.help()
	case logPane:
		body = m.commandLog(room)
	default:
		body = m.list(room)
	}
	for len(body) < room {
		body = append(body, "")
	}
	rows := append([]string{m.header()}, body[:room]...)
	rows = append(rows, m.bottom(), m.keys())
	for i, row := range rows {
		rows[i] = ansi.Truncate(row, m.width, "…")
	}
	return rows[:min(len(rows), m.height)]
}

func (m *Model) header() string {
	text := styled(bold, "coven") + "  " + m.counts()
	if m.filter != "" {
		text += "  " + styled(yellow, "/"+printable(m.filter))
	}
	return text
}

// list returns the list of cards, and the description of the selected one.
func (m *Model) list(room int) []string {
	switch {
	case m.err != nil:
		return []string{"", styled(red, printable(m.err.Error()))}
	case !m.loaded:
		return []string{"", "reading the sessions …"}
	case len(m.visible()) == 0 && m.filter != "":
		return []string{"", "no task matches: Esc shows all"}
	case len(m.cards) == 0:
		return []string{"", "no tasks yet: n adds one, R runs those that are ready"}
	}
	width, height := m.width, room
	detail := m.detail()
	if m.width >= wide {
		width = m.width * 3 / 5
	} else {
		height = max(room-min(len(detail), room/3)-1, 1)
	}
	rows := m.rows(width, height)
	if m.width < wide {
		rows = append(rows, styled(dim, strings.Repeat("─", m.width)))
		return append(rows, detail...)
	}
	for i := range rows {
		right := ""
		if i < len(detail) {
			right = detail[i]
		}
		rows[i] = pad(ansi.Truncate(rows[i], width-1, "…"), width-1) + styled(dim, "│") + " " + right
	}
	return rows
}

// rows returns height rows of the list, with the selected card among them.
func (m *Model) rows(width, height int) []string {
	var all []string
	selected, section := 0, board.Section(-1)
	for _, c := range m.visible() {
		if c.Section != section {
			if section = c.Section; len(all) > 0 {
				all = append(all, "")
			}
			all = append(all, styled(bold, fmt.Sprintf("%d %s", c.Section+1, c.Section)))
		}
		if c.Task == m.selected {
			selected = len(all)
		}
		all = append(all, m.row(c, width))
	}
	all = all[max(selected-height+1, 0):]
	for len(all) < height {
		all = append(all, "")
	}
	return all[:height]
}

// row is the line of a card: its title, its question or action, its time and cost, and its ID.
func (m *Model) row(c board.Card, width int) string {
	right := fmt.Sprintf(" %4s %6s %s", m.age(c.Since), cost(c.Cost), c.Short)
	if width < 60 {
		right = " " + c.Short
	}
	room := max(width-4-ansi.StringWidth(right), 8)
	title := ansi.Truncate(c.Title, room, "…")
	text := ""
	if left := room - ansi.StringWidth(title) - 2; left > 8 {
		text = "  " + ansi.Truncate(strings.TrimSpace(mark(c)+c.Text), left, "…")
	}
	mark := "  "
	if c.Task == m.selected {
		mark = styled(invert, ">") + " "
	}
	return mark + pad(color(c, title)+styled(dim, text), room) + right
}

// mark returns the state before the text, where the section does not say it.
func mark(c board.Card) string {
	if c.Section == board.NeedsYou {
		return c.State + ": "
	}
	return ""
}

func color(c board.Card, text string) string {
	switch {
	case c.Section == board.NeedsYou && c.State != "waiting (review)":
		return styled(red, text)
	case c.Section == board.NeedsYou:
		return styled(yellow, text)
	case c.Section == board.Landed:
		return styled(green, text)
	}
	return text
}

// detail describes the selected card.
func (m *Model) detail() []string {
	c, _, ok := m.at()
	if !ok {
		return nil
	}
	width := m.width
	if m.width >= wide {
		width = m.width - m.width*3/5 - 2
	}
	var text []string
	add := func(style, format string, args ...any) {
		for row := range strings.SplitSeq(ansi.Wrap(printable(fmt.Sprintf(format, args...)), max(width, 8), ""), "\n") {
			text = append(text, styled(style, row))
		}
	}
	add(bold, "%s", c.Title)
	add(plain, "%s  %s", c.Task, c.State)
	if c.Text != "" {
		add(plain, "%s", c.Text)
	}
	if len(c.View.Open) > 0 {
		add(red, "%s", findings.Summary(c.View.Open))
	}
	for _, step := range c.View.Steps {
		add(plain, "%s: %s %s", terminal.StepName(step.Path), step.Status, step.Summary)
	}
	if c.View.Worktree != "" {
		add(dim, "%s", c.View.Worktree)
	}
	return text
}

// bottom is the question, the last message, or the next command.
func (m *Model) bottom() string {
	switch c, _, ok := m.at(); {
	case m.asks != nil && m.asks.text:
		return styled(bold, m.asks.label) + m.input.View()
	case m.asks != nil:
		return styled(bold, m.asks.label)
	case m.said != "":
		return printable(m.said)
	case ok && c.Next != "":
		return styled(dim, "next: "+c.Next)
	}
	return ""
}

// keys names the keys that are useful now.
func (m *Model) keys() string {
	switch {
	case m.pane != noPane:
		return styled(dim, "any key: back")
	case m.asks != nil && m.asks.text:
		return styled(dim, "Enter: done  Esc: back")
	case m.asks != nil:
		return styled(dim, "y: yes  any other key: no")
	}
	var names []string
	c, _, ok := m.at()
	for _, a := range board.Actions() {
		if ok && a.When != nil && a.When(c) {
			names = append(names, a.Key+" "+a.Name)
		}
	}
	names = append(names, "n new task", "R run", "/ filter")
	const last = "? keys  q quit"
	line := ""
	for _, name := range names {
		if ansi.StringWidth(line+name+"  "+last) > m.width {
			break
		}
		line += name + "  "
	}
	return styled(dim, line+last)
}

func (m *Model) help() []string {
	rows := []string{
		"", "j k ↑ ↓  move        g G  first, last      1 2 3 4  section", "w  next task that needs you          /  filter, Esc shows all",
		":  a command line of coven            @  command log     !  shell in the worktree     q  quit", "",
	}
	for _, a := range board.Actions() {
		line := "coven " + strings.Join(a.Args(board.Card{Task: "TASK"}), " ")
		if a.Ask != "" {
			line += " TEXT"
		}
		rows = append(rows, fmt.Sprintf("%s  %-16s %s", a.Key, a.Name, styled(dim, line)))
	}
	return rows
}

// commandLog lists the last command lines that the screen has run.
func (m *Model) commandLog(room int) []string {
	rows := []string{"", styled(bold, "Command log")}
	if len(m.log) == 0 {
		rows = append(rows, "no command has run yet")
	}
	for _, d := range m.log[max(len(m.log)-max(room-2, 0), 0):] {
		result := d.result
		if result == "" {
			result = "running"
		}
		rows = append(rows, fmt.Sprintf("%s  %s  %s", d.at.Local().Format(time.TimeOnly), printable(d.line), styled(dim, result)))
	}
	return rows
}

// age returns the time since a card came into its state, or "" if its task has not begun.
func (m *Model) age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return terminal.Age(m.source.Now().Sub(since))
}

func cost(usd float64) string {
	if usd == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}

// pad fills a text to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
