package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"mvdan.cc/sh/v3/expand"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// key handles a key.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case m.asks != nil:
		return m.answer(msg)
	case m.form != nil:
		return m.fill(msg)
	}
	m.said = ""
	switch key := msg.String(); {
	case m.pager != nil:
		return m.page(key)
	case m.review != nil:
		return m.review.key(m, key)
	case m.navigate(key):
		return nil
	default:
		return m.listKey(key)
	}
}

// listKey handles a key of the list that selects no task.
func (m *Model) listKey(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "/":
		m.ask("filter", m.filter, func(m *Model, text string) tea.Cmd { m.filter = text; m.keepSelection(); return nil })
	case ":":
		m.ask("coven", "", (*Model).palette)
	case "?":
		m.pager = &pager{title: "Keys", lines: help()}
	case "@":
		m.pager = &pager{title: "Command log", lines: m.commandLog()}
	case "M":
		m.mouse = !m.mouse
		m.said = map[bool]string{true: "the mouse scrolls and selects", false: "the mouse selects text"}[m.mouse]
	case "n":
		m.form = newForm()
	case "!":
		if c, _, ok := m.at(); ok && c.View.Worktree != "" {
			return tea.Exec(m.source.Shell(c.View.Worktree), func(error) tea.Msg { return changedNow{} })
		}
		m.said = "this task has no worktree"
	case "enter", "v":
		if c, _, ok := m.at(); ok && c.View.Worktree != "" {
			return m.openReview(c)
		}
		return m.act("v")
	default:
		return m.act(key)
	}
	return nil
}

// openReview shows the review of a card's change.
func (m *Model) openReview(c board.Card) tea.Cmd {
	m.record([]string{"review", c.Task}).result = "shown"
	m.review = newReviewView(c.Task)
	m.review.updated = c.View.Updated
	return m.review.load(m.source)
}

// page handles a key while a text is shown. The keys of its task work, too.
func (m *Model) page(key string) tea.Cmd {
	p := m.pager
	switch {
	case p.key(key, m.width, m.room()):
		m.said = p.said
	case key == "q", key == "esc", key == "ctrl+c", key == "?" && p.task == "":
		m.pager = nil
	case key == "/":
		m.ask("search", p.search, func(m *Model, text string) tea.Cmd {
			p.find(text, m.width, m.room())
			m.said = p.said
			return nil
		})
	case p.task != "" && p.task == m.selected && key != "enter":
		return m.act(key)
	}
	return nil
}

// fill handles a key while the form of a new task is open.
func (m *Model) fill(msg tea.KeyPressMsg) tea.Cmd {
	switch key := msg.String(); {
	case key == "esc", key == "ctrl+c":
		if m.form.title() == "" {
			m.form = nil
			return nil
		}
		m.confirm("discard the new task?", func(m *Model, _ string) tea.Cmd { m.form = nil; return nil })
	case key == "ctrl+s" && m.form.title() == "":
		m.said = "a task needs a title"
	case key == "ctrl+s":
		args := m.form.args()
		m.form = nil
		return m.run(args)
	default:
		m.said = ""
		return m.form.key(msg)
	}
	return nil
}

// navigate handles the keys that select a task, and reports whether key is one of them.
func (m *Model) navigate(key string) bool {
	switch key {
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "pgdown", "ctrl+d":
		m.move(10)
	case "pgup", "ctrl+u":
		m.move(-10)
	case "g", "home":
		m.move(-len(m.cards))
	case "G", "end":
		m.move(len(m.cards))
	case "1", "2", "3", "4":
		m.jump(board.Section(key[0] - '1'))
	case "w":
		m.nextThatWaits()
	case "esc":
		m.filter = ""
		m.keepSelection()
	default:
		return false
	}
	return true
}

func (m *Model) move(by int) {
	cards := m.visible()
	if _, i, ok := m.at(); ok {
		m.selected = cards[min(max(i+by, 0), len(cards)-1)].Task
	}
}

func (m *Model) jump(to board.Section) {
	for _, c := range m.visible() {
		if c.Section >= to {
			m.selected = c.Task
			return
		}
	}
}

// nextThatWaits selects the next card that needs a person, after the selected one.
func (m *Model) nextThatWaits() {
	cards := m.visible()
	_, i, ok := m.at()
	for n := range len(cards) {
		if c := cards[(i+n+1)%len(cards)]; ok && c.Section == board.NeedsYou {
			m.selected = c.Task
			return
		}
	}
	m.said = "nothing needs you"
}

// click selects the card in a row of the window.
func (m *Model) click(row int) {
	if m.pager != nil || m.form != nil || m.asks != nil {
		return
	}
	if rows := m.window(m.listHeight()); row >= 1 && row <= len(rows) && rows[row-1].card.Task != "" {
		m.selected = rows[row-1].card.Task
	}
}

// wheel scrolls.
func (m *Model) wheel(by int) {
	switch {
	case m.form != nil || m.asks != nil:
	case m.pager != nil:
		key := map[bool]string{true: "j", false: "k"}[by > 0]
		for range 3 {
			m.pager.key(key, m.width, m.room())
		}
	default:
		m.move(by)
	}
}

// act does the action of a key: of several, the first one that makes sense for the selected task.
func (m *Model) act(key string) tea.Cmd {
	c, _, ok := m.at()
	all := slices.DeleteFunc(board.Actions(), func(a board.Action) bool { return a.Key != key })
	if len(all) == 0 {
		return nil
	}
	i := slices.IndexFunc(all, func(a board.Action) bool { return a.When == nil || ok && a.When(c) })
	if i < 0 {
		m.said = all[len(all)-1].Name + " is not possible for this task now"
		return nil
	}
	a := all[i]
	run := func(m *Model, text string) tea.Cmd {
		args := a.Args(c)
		if a.Ask != "" {
			if strings.TrimSpace(text) == "" {
				m.said = "nothing was done: the text is empty"
				return nil
			}
			args = append(args, text)
		}
		return m.do(a, c, args)
	}
	switch {
	case a.Ask != "":
		suggested := ""
		if a.Suggest != nil {
			suggested = a.Suggest(c)
		}
		m.ask(a.Ask+" "+a.Subject(c), suggested, run)
	case a.Confirm != "":
		m.confirm(a.Confirm+" "+a.Subject(c)+"?", run)
	default:
		return run(m, "")
	}
	return nil
}

// do runs the command line of an action, or shows its output.
func (m *Model) do(a board.Action, c board.Card, args []string) tea.Cmd {
	switch {
	case a.Reads:
		return m.show(a, c, args)
	case a.Inside:
		return m.inside(args)
	}
	return m.run(args)
}

// show opens a pager for the output of a command line.
func (m *Model) show(a board.Action, c board.Card, args []string) tea.Cmd {
	p := &pager{title: a.Name}
	if a.When != nil {
		p.title, p.task = a.Name+"  "+c.Title, c.Task
	}
	d := m.record(args)
	d.result = "shown"
	p.line = d.line
	switch a.Name {
	case "live", "story":
		p.feed, p.style, p.follow = m.source.Story(c, a.Name == "live"), storyColor, a.Name == "live"
	default:
		p.feed = m.source.Output(args)
		if a.Name == "diff" {
			p.style, p.files = terminal.DiffColor, true
		}
	}
	m.pager = p
	return m.readPager()
}

// palette runs a command line that a person types.
func (m *Model) palette(text string) tea.Cmd {
	words, err := shellword.Words(text)
	if err != nil {
		m.said = err.Error()
		return nil
	}
	args, err := expand.Fields(nil, words...)
	if err != nil || len(args) == 0 {
		return nil
	}
	return m.inside(args)
}

// record adds a command line of coven to the log.
func (m *Model) record(args []string) *done {
	d := &done{line: board.CommandLine(args), at: m.source.Now()}
	m.log = append(m.log, d)
	return d
}

// inside runs a command line of coven on the terminal.
func (m *Model) inside(args []string) tea.Cmd {
	d := m.record(args)
	return tea.Exec(m.source.Inside(args), func(err error) tea.Msg { return endedMsg{of: d, output: "shown", err: err} })
}

// run runs a command line of coven aside. It goes on when the screen is closed.
func (m *Model) run(args []string) tea.Cmd {
	d := m.record(args)
	m.said = d.line + " …"
	return func() tea.Msg {
		wait, err := m.source.Start(args)
		if err != nil {
			return endedMsg{of: d, err: err}
		}
		output, err := wait()
		return endedMsg{of: d, output: output, err: err}
	}
}

// ask asks for a text.
func (m *Model) ask(label, text string, answer func(*Model, string) tea.Cmd) {
	m.asks = &question{label: label + ": ", text: true, answer: answer}
	m.input.SetValue(text)
	m.input.CursorEnd()
	m.input.Focus()
}

// confirm asks for yes. Every other key means no.
func (m *Model) confirm(label string, answer func(*Model, string) tea.Cmd) {
	m.asks = &question{label: label, answer: answer}
}

// answer handles a key while a question is open.
func (m *Model) answer(msg tea.KeyPressMsg) tea.Cmd {
	asks, key := m.asks, msg.String()
	switch {
	case key == "ctrl+c", key == "esc":
		if m.asks = nil; asks.left != nil {
			asks.left(m.input.Value())
		}
	case !asks.text:
		if m.asks = nil; key == "y" || key == "Y" {
			return asks.answer(m, "")
		}
		m.said = "nothing was done"
	case key == "enter":
		m.asks = nil
		return asks.answer(m, m.input.Value())
	default:
		var cmd tea.Cmd
		m.input, cmd = m.input.Update(msg)
		return cmd
	}
	return nil
}
