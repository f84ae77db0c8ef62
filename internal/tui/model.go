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

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
)

// Source supplies the cards and starts the commands of the screen.
type Source interface {
	// Cards returns the present cards.
	Cards() ([]board.Card, error)
	// Today returns the budget of the repository for today, with its usage. Without a limit, the usage is unknown.
	Today() (budget.Day, error)
	// Changed waits until the cards may have changed.
	Changed() error
	// Start starts a command line of coven aside, and returns how it ends.
	Start(args []string) (wait func() (output string, err error), err error)
	// Story returns the story of a card's session, or from its last step on.
	Story(c board.Card, live bool) Feed
	// Output returns the output of a command line of coven that only prints.
	Output(args []string) Feed
	// Review returns the review of a task's change, and the files of a part of it. If last is not empty, it is the tree of the
	// last look.
	Review(task string, extent review.Extent, last string) (review.Review, []review.File, error)
	// Viewed records whether the person has viewed a file of a change as it is.
	Viewed(of review.Review, path string, viewed bool) error
	// Looked records that the person has looked at the present content of a change.
	Looked(of review.Review) error
	// Inside returns the command that runs a command line of coven on the terminal, and waits for a key after it.
	Inside(args []string) tea.ExecCommand
	// Shell returns the command of the person's shell in a directory.
	Shell(dir string) tea.ExecCommand
	Now() time.Time
}

// Model is the state of the screen.
type Model struct {
	source        Source
	cards         []board.Card
	today         budget.Day
	err           error
	loaded        bool
	selected      string // task
	filter        string
	width, height int
	pager         *pager      // covers the list; nil for none
	form          *form       // covers the list; nil for none
	review        *reviewView // covers the list; nil for none
	asks          *question
	input         textinput.Model
	log           []*done
	said          string // the last message
	mouse         bool   // the mouse scrolls and selects, instead of selecting text
	reading       *turn
	notices       notices
}

// A question is asked on the last line: for a text if it has a label, else for yes or no.
type question struct {
	label  string
	text   bool
	answer func(m *Model, text string) tea.Cmd
	left   func(text string) // is called with an unfinished text; nil if it is not needed
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
		today budget.Day
		err   error
	}
	changedMsg struct{ err error }
	endedMsg   struct {
		of     *done
		output string
		err    error
	}
	textMsg struct {
		of    *pager
		lines []string
		err   error
	}
	changedNow struct{} // the cards may have changed
	tickMsg    struct{}
)

// New returns the screen of a source.
func New(source Source) Model {
	input := textinput.New()
	input.Prompt = ""
	return Model{source: source, input: input, reading: &turn{busy: true}}
}

// Init implements tea.Model.
func (m Model) Init() tea.Cmd { return tea.Batch(m.read, m.await, tick()) }

// changed reads the board again, or later if it is being read.
func (m *Model) changed() tea.Cmd {
	pager := m.readPager()
	if !m.reading.begin() {
		return pager
	}
	return tea.Batch(m.read, pager)
}

// readPager reads the next lines of the text that is shown.
func (m *Model) readPager() tea.Cmd {
	p := m.pager
	if p == nil || p.feed == nil || !p.read.begin() {
		return nil
	}
	return func() tea.Msg { return p.next() }
}

func (m Model) read() tea.Msg {
	cards, err := m.source.Cards()
	today, _ := m.source.Today() // without it, there is no bar
	return cardsMsg{cards, today, err}
}

func (m Model) await() tea.Msg { return changedMsg{m.source.Changed()} }

// tick redraws the ages.
func tick() tea.Cmd { return tea.Tick(10*time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	return m, cmd
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.input.SetWidth(max(m.width/2, 1))
	case tickMsg:
		now := m.source.Now()
		if slices.ContainsFunc(m.cards, func(c board.Card) bool { return !c.Wakes.IsZero() && !now.Before(c.Wakes) }) {
			return tea.Batch(tick(), m.changed())
		}
		return tick()
	case cardsMsg:
		return m.setCards(msg)
	case changedMsg:
		if msg.err != nil {
			m.said = msg.err.Error()
			return m.changed()
		}
		return tea.Batch(m.changed(), m.await)
	case changedNow:
		return m.changed()
	case textMsg:
		msg.of.add(msg)
		if msg.of.read.end() {
			return m.readPager()
		}
	case reviewMsg:
		return msg.of.take(msg, m.source)
	case collectedMsg:
		return m.announce()
	case endedMsg:
		m.end(msg)
		if m.review != nil {
			return tea.Batch(m.changed(), m.review.load(m.source))
		}
		return m.changed()
	default:
		return m.fromPerson(msg)
	}
	return nil
}

// fromPerson handles a key, the mouse, a pasted text, or that the person looks here or elsewhere.
func (m *Model) fromPerson(msg tea.Msg) tea.Cmd {
	m.notices.notePerson(msg, m.source.Now())
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		msg.Text = terminal.Printable(msg.Text) // a text of a person is shown, too
		return m.key(msg)
	case tea.MouseClickMsg:
		m.click(msg.Y)
	case tea.MouseWheelMsg:
		m.wheel(map[bool]int{true: 1, false: -1}[msg.Button == tea.MouseWheelDown])
	case tea.PasteMsg:
		return m.paste(msg)
	}
	return nil
}

// setCards shows the cards that were read.
func (m *Model) setCards(msg cardsMsg) tea.Cmd {
	if m.err, m.loaded = msg.err, true; msg.err == nil {
		m.cards, m.today = msg.cards, msg.today
	}
	m.keepSelection()
	cmd := tea.Batch(m.readReview(), m.collect())
	if m.reading.end() {
		return tea.Batch(m.changed(), cmd)
	}
	return cmd
}

// readReview reads the review that is shown if its session has changed.
func (m *Model) readReview() tea.Cmd {
	c, _, ok := m.at()
	if m.review == nil || !ok || c.Task != m.review.task || c.View.Updated.Equal(m.review.updated) {
		return nil
	}
	m.review.updated = c.View.Updated
	return m.review.load(m.source)
}

func (m *Model) paste(msg tea.PasteMsg) tea.Cmd {
	msg.Content = terminal.PrintableLines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(msg.Content))
	switch {
	case m.asks != nil && m.asks.text:
		m.input.SetValue(m.input.Value() + strings.Join(strings.Fields(msg.Content), " "))
		m.input.CursorEnd()
	case m.asks == nil && m.form != nil:
		return m.form.update(msg)
	}
	return nil
}

// end records how a command line ended.
func (m *Model) end(msg endedMsg) {
	text, _ := board.Result(msg.output, msg.err)
	msg.of.result = printable(text)
	m.said = msg.of.line + ": " + msg.of.result
}

// visible returns the cards that match the filter.
func (m *Model) visible() []board.Card {
	words := strings.Fields(strings.ToLower(m.filter))
	if len(words) == 0 {
		return m.cards
	}
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
