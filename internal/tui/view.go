package tui

import (
	"fmt"
	"slices"
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
	view.AltScreen, view.WindowTitle, view.ReportFocus = true, "coven", m.notices.sender != nil
	if m.mouse {
		view.MouseMode = tea.MouseModeCellMotion
	}
	return view
}

// room is the number of rows between the header and the last two lines.
func (m *Model) room() int { return max(m.height-3, 1) }

// lines returns the whole screen, one string for each row.
func (m *Model) lines() []string {
	if m.width == 0 || m.height == 0 {
		return nil
	}
	room := m.room()
	var header string
	var body []string
	switch {
	case m.form != nil:
		header, body = styled(bold, "New task"), m.form.rows(m.width, room)
	case m.pager != nil:
		body = m.pager.rows(m.width, room) // first, because it scrolls to the end of what it follows
		header = m.pagerHeader()
	case m.review != nil:
		header, body = m.review.header(), m.review.lines(m.width, room)
	default:
		header, body = m.header(), m.list()
	}
	for len(body) < room {
		body = append(body, "")
	}
	rows := append([]string{header}, body[:room]...)
	rows = append(rows, m.bottom(), m.keys())
	for i, row := range rows {
		rows[i] = ansi.Truncate(row, m.width, "…")
	}
	return rows[:min(len(rows), m.height)]
}

// pagerHeader is the title of a text, and the part of it that is on the screen.
func (m *Model) pagerHeader() string {
	right := m.pager.position(m.room())
	left := ansi.Truncate(printable(m.pager.title), max(m.width-ansi.StringWidth(right)-2, 10), "…")
	return styled(bold, pad(left, m.width-ansi.StringWidth(right))) + styled(dim, right)
}

func (m *Model) header() string {
	text := styled(bold, "coven") + "  " + m.counts()
	if m.filter != "" {
		text += "  " + styled(yellow, "/"+printable(m.filter))
	}
	for _, b := range board.Bars(m.today.Used, m.today.Limit) {
		text += "  " + styled(dim, "today "+b.Blocks(10)+" "+b.Text)
	}
	return text
}

// list returns the list of cards, and the description of the selected one.
func (m *Model) list() []string {
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
	width := m.width
	if m.width >= wide {
		width = m.width * 3 / 5
	}
	ids := 0
	for _, c := range m.visible() {
		ids = max(ids, ansi.StringWidth(c.Short))
	}
	rows, detail := []string{}, m.detail()
	for _, e := range m.window(m.listHeight()) {
		rows = append(rows, m.draw(e, width, ids))
	}
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

// listHeight returns the number of rows of the list: all, or those above the description.
func (m *Model) listHeight() int {
	if m.width >= wide {
		return m.room()
	}
	return max(m.room()-min(len(m.detail()), m.room()/3)-1, 1)
}

// An entry is a row of the list: a card, the heading of a section, or nothing.
type entry struct {
	card    board.Card
	heading string
}

// window returns height rows of the list, with the selected card among them.
func (m *Model) window(height int) []entry {
	var all []entry
	selected, section := 0, board.Section(-1)
	for _, c := range m.visible() {
		if c.Section != section {
			if section = c.Section; len(all) > 0 {
				all = append(all, entry{})
			}
			all = append(all, entry{heading: fmt.Sprintf("%d %s", c.Section+1, c.Section)})
		}
		if c.Task == m.selected {
			selected = len(all)
		}
		all = append(all, entry{card: c})
	}
	all = all[max(selected-height+1, 0):]
	return append(all, make([]entry, max(height-len(all), 0))...)[:height]
}

// draw returns the text of a row of the list. IDs have up to ids cells.
func (m *Model) draw(e entry, width, ids int) string {
	switch {
	case e.heading != "":
		return styled(bold, e.heading)
	case e.card.Task == "":
		return ""
	}
	return m.row(e.card, width, ids)
}

// row is the line of a card: its title, its question or action, its time and cost, and its ID.
func (m *Model) row(c board.Card, width, ids int) string {
	right := fmt.Sprintf(" %4s %6s %s", m.age(c.Since), board.Cost(c.Cost), pad(c.Short, ids))
	if width < 60 {
		right = " " + pad(c.Short, ids)
	}
	room := max(width-4-ansi.StringWidth(right), 8)
	title, text := c.Title, strings.TrimSpace(mark(c)+c.Text)
	if limit := max(room*3/5, room-ansi.StringWidth(text)-2); text != "" && room >= 40 {
		title = ansi.Truncate(title, limit, "…") // both are visible
	}
	title = ansi.Truncate(title, room, "…")
	if left := room - ansi.StringWidth(title) - 2; left > 8 {
		text = "  " + ansi.Truncate(text, left, "…")
	} else {
		text = ""
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
	switch q, asked := c.Asks(); {
	case asked:
		for row := range strings.SplitSeq(strings.TrimSpace(terminal.Approval(q.Approval)), "\n") {
			add("\x1b["+terminal.DiffColor(row)+"m", "%s", row)
		}
	case c.Text != "":
		add(plain, "%s", c.Text)
	}
	for _, b := range board.Bars(c.View.Used, c.View.Limit) {
		add(plain, "%s %s", b.Blocks(10), b.Text)
	}
	for _, text := range c.Conflicts() {
		add(yellow, "%s", text)
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
		label := ansi.Truncate(m.asks.label, max(m.width-m.input.Width()-2, 8), "…: ")
		return styled(bold, label) + m.input.View()
	case m.asks != nil:
		const choice = " (y/N) "
		return styled(bold, ansi.Truncate(m.asks.label, max(m.width-len(choice), 8), "…")+choice)
	case m.said != "":
		return printable(m.said)
	case m.form != nil:
		return styled(dim, "$ "+printable(board.CommandLine(m.form.args())))
	case m.pager != nil && m.pager.line != "":
		return styled(dim, "$ "+printable(m.pager.line))
	case m.pager == nil && ok && c.Next != "":
		return styled(dim, "next: "+c.Next)
	}
	return ""
}

// keys names the keys that are useful now.
func (m *Model) keys() string {
	switch {
	case m.asks != nil && m.asks.text:
		return styled(dim, "Enter: done  Esc: back")
	case m.asks != nil:
		return styled(dim, "y: yes  any other key: no")
	case m.form != nil:
		return styled(dim, "Ctrl-S: add  Tab: next field  Esc: back")
	case m.pager != nil && m.pager.files:
		return m.fit(m.useful("v", "d", "l", "s", "y"), "j k scroll", "n p file", "/ search", "q back")
	case m.pager != nil && m.pager.task != "":
		return m.fit(m.useful("v", "d", "l", "s", "y"), "j k scroll", "/ search", "q back")
	case m.pager != nil:
		return m.fit(nil, "j k scroll", "g G", "/ search", "q back")
	case m.review != nil:
		return m.fit(reviewKeys[:len(reviewKeys)-2], reviewKeys[len(reviewKeys)-2:]...)
	}
	return m.fit(append(m.useful(), "n new task", "R run", "/ filter"), "? keys", "q quit")
}

// useful names the actions that make sense for the selected task, except for some keys.
func (m *Model) useful(except ...string) (names []string) {
	c, _, ok := m.at()
	seen := map[string]bool{}
	for _, key := range except {
		seen[key] = true
	}
	for _, a := range board.Actions() {
		if ok && a.When != nil && !seen[a.Key] && a.When(c) {
			seen[a.Key] = true
			names = append(names, a.Key+" "+a.Name)
		}
	}
	return names
}

// fit returns the first names for which there is room before the last ones. Of these, the end stays in a narrow window.
func (m *Model) fit(names []string, last ...string) string {
	for len(last) > 1 && ansi.StringWidth(strings.Join(last, "  ")) > m.width {
		last = last[1:]
	}
	line, end := "", strings.Join(last, "  ")
	for _, name := range names {
		if ansi.StringWidth(line+name+"  "+end) > m.width {
			break
		}
		line += name + "  "
	}
	return styled(dim, line+end)
}

// help lists the keys.
func help() []string {
	lines := []string{
		"j k ↑ ↓  move             g G  first, last", "1 2 3 4  section          w    next task that needs you", "/        filter           Esc  shows all",
		":        command line     @    command log", "!        shell            M    mouse on or off", "?        these keys       q    quit", "",
	}
	for _, a := range board.Actions() {
		line := "coven " + strings.Join(a.Args(board.Card{Task: "TASK"}), " ")
		if a.Ask != "" {
			line += " TEXT"
		}
		line = fmt.Sprintf("%s  %-15s  %s", a.Key, a.Name, line)
		lines = append(lines, line)
	}
	return lines
}

// commandLog lists the command lines that the screen has run, the latest first.
func (m *Model) commandLog() (lines []string) {
	for _, d := range slices.Backward(m.log) {
		result := d.result
		if result == "" {
			result = "running"
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s", d.at.Local().Format(time.TimeOnly), printable(d.line), result))
	}
	if lines == nil {
		return []string{"no command has run yet"}
	}
	return lines
}

// age returns the time since a card came into its state, or "" if its task has not begun.
func (m *Model) age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return terminal.Age(m.source.Now().Sub(since))
}

// pad fills a text to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
