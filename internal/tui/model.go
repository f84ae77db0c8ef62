// Package tui is the screen: it lists the tasks of a repository, those that need a person first. It has no logic of its own: it
// shows the cards of package board, and every action is a command line of coven in a process of its own, which the command log
// lists.
package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"mvdan.cc/sh/v3/expand"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Source supplies the cards and starts the commands of the screen.
type Source interface {
	// Cards returns the present cards.
	Cards() ([]board.Card, error)
	// Changed waits until the cards may have changed.
	Changed() error
	// Start starts a command line of coven aside, and returns how it ends.
	Start(args []string) (wait func() (output string, err error), err error)
	// Inside returns the command that runs a command line of coven on the terminal, and waits for a key after it.
	Inside(args []string) tea.ExecCommand
	// Shell returns the command of the person's shell in a directory.
	Shell(dir string) tea.ExecCommand
	Now() time.Time
}

// A pane covers the list.
type pane int

const (
	noPane pane = iota
	helpPane
	logPane
)

// Model is the state of the screen.
type Model struct {
	source        Source
	cards         []board.Card
	err           error
	loaded        bool
	selected      string // task
	filter        string
	width, height int
	pane          pane
	asks          *question
	input         textinput.Model
	log           []*done
	said          string // the last message
}

// A question is asked on the last line: for a text if it has a label, else for yes or no.
type question struct {
	label  string
	text   bool
	answer func(m *Model, text string) tea.Cmd
}

// done is a command line that the screen has run.
type done struct {
	line   string
	at     time.Time
	result string // empty while it runs
}

type (
	cardsMsg struct {
		cards []board.Card
		err   error
	}
	changedMsg struct{ err error }
	endedMsg   struct {
		of     *done
		output string
		err    error
	}
	tickMsg struct{}
)

// New returns the screen of a source.
func New(source Source) Model {
	input := textinput.New()
	input.Prompt = ""
	return Model{source: source, input: input}
}

// Init implements tea.Model.
func (m Model) Init() tea.Cmd { return tea.Batch(m.read, m.await, tick()) }

func (m Model) read() tea.Msg {
	cards, err := m.source.Cards()
	return cardsMsg{cards, err}
}

func (m Model) await() tea.Msg { return changedMsg{m.source.Changed()} }

// tick redraws the ages.
func tick() tea.Cmd { return tea.Tick(10*time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		return m, tick()
	case cardsMsg:
		if m.err, m.loaded = msg.err, true; msg.err == nil {
			m.cards = msg.cards
		}
		m.keepSelection()
	case changedMsg:
		if msg.err != nil {
			m.said = msg.err.Error()
			return m, m.read
		}
		return m, tea.Batch(m.read, m.await)
	case endedMsg:
		m.end(msg)
		return m, m.read
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		return m, cmd
	case tea.PasteMsg:
		if m.asks != nil && m.asks.text {
			m.input.SetValue(m.input.Value() + strings.Join(strings.Fields(msg.Content), " "))
			m.input.CursorEnd()
		}
	}
	return m, nil
}

// end records how a command line ended.
func (m *Model) end(msg endedMsg) {
	lines := slices.DeleteFunc(strings.Split(msg.output, "\n"), func(line string) bool { return line == "" || line[0] == ' ' }) // next: and session:
	msg.of.result = "done"
	if len(lines) > 0 {
		msg.of.result = printable(lines[len(lines)-1])
	}
	if msg.err != nil {
		msg.of.result = printable(strings.TrimPrefix(msg.of.result+" ("+msg.err.Error()+")", " "))
	}
	m.said = msg.of.line + ": " + msg.of.result
}

// visible returns the cards that match the filter.
func (m *Model) visible() []board.Card {
	words := strings.Fields(strings.ToLower(m.filter))
	return slices.DeleteFunc(slices.Clone(m.cards), func(c board.Card) bool {
		text := strings.ToLower(strings.Join([]string{c.Title, c.Task, c.State, c.Text}, " "))
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// at returns the selected card, and its index in the visible ones. ok is false if there is none.
func (m *Model) at() (c board.Card, i int, ok bool) {
	cards := m.visible()
	i = slices.IndexFunc(cards, func(c board.Card) bool { return c.Task == m.selected })
	if i < 0 {
		return board.Card{}, 0, false
	}
	return cards[i], i, true
}

// keepSelection selects the first card if the selected one is gone.
func (m *Model) keepSelection() {
	if _, _, ok := m.at(); !ok {
		m.selected = ""
		if cards := m.visible(); len(cards) > 0 {
			m.selected = cards[0].Task
		}
	}
}

// key handles a key.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	if m.asks != nil {
		return m.answer(msg)
	}
	if m.pane != noPane {
		m.pane = noPane
		return nil
	}
	m.said = ""
	key := msg.String()
	if m.navigate(key) {
		return nil
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "/":
		m.ask("filter", m.filter, func(m *Model, text string) tea.Cmd { m.filter = text; m.keepSelection(); return nil })
	case ":":
		m.ask("coven", "", (*Model).palette)
	case "?":
		m.pane = helpPane
	case "@":
		m.pane = logPane
	case "!":
		if c, _, ok := m.at(); ok && c.View.Worktree != "" {
			return tea.Exec(m.source.Shell(c.View.Worktree), func(error) tea.Msg { return m.read() })
		}
		m.said = "this task has no worktree"
	case "enter":
		return m.act("v")
	default:
		return m.act(key)
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

// act does the action of a key.
func (m *Model) act(key string) tea.Cmd {
	all := board.Actions()
	i := slices.IndexFunc(all, func(a board.Action) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	a := all[i]
	c, _, ok := m.at()
	if a.When != nil && (!ok || !a.When(c)) {
		m.said = a.Name + " is not possible for this task now"
		return nil
	}
	run := func(m *Model, text string) tea.Cmd {
		args := a.Args(c)
		if a.Ask != "" {
			if strings.TrimSpace(text) == "" {
				m.said = "nothing was done: the text is empty"
				return nil
			}
			args = append(args, text)
		}
		return m.run(a.Inside, args)
	}
	switch {
	case a.Ask != "":
		m.ask(a.Ask+" "+c.Short, "", run)
	case a.Confirm != "":
		m.confirm(a.Confirm+" "+c.Short+"?", run)
	default:
		return run(m, "")
	}
	return nil
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
	return m.run(true, args)
}

// run runs a command line of coven, inside the terminal or aside.
func (m *Model) run(inside bool, args []string) tea.Cmd {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shellword.Word(arg)
	}
	d := &done{line: "coven " + strings.Join(words, " "), at: m.source.Now()}
	m.log = append(m.log, d)
	if inside {
		return tea.Exec(m.source.Inside(args), func(err error) tea.Msg { return endedMsg{of: d, output: "shown", err: err} })
	}
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
	m.asks = &question{label: label + " (y/N) ", answer: answer}
}

// answer handles a key while a question is open.
func (m *Model) answer(msg tea.KeyPressMsg) tea.Cmd {
	asks, key := m.asks, msg.String()
	switch {
	case key == "ctrl+c", key == "esc":
		m.asks = nil
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

// counts describes the numbers of cards by section.
func (m *Model) counts() string {
	n := map[board.Section]int{}
	for _, c := range m.cards {
		n[c.Section]++
	}
	need := "need"
	if n[board.NeedsYou] == 1 {
		need = "needs"
	}
	return fmt.Sprintf("%d %s you, %d running, %d waiting, %d landed today", n[board.NeedsYou], need, n[board.Running], n[board.Waiting], n[board.Landed])
}
