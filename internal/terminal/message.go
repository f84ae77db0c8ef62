package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coven-run/coven/internal/text/oneline"
)

// interruptible is a Prompt that handles Ctrl-C as a key.
type interruptible interface{ takesInterrupt() }

func takesInterrupt(p Prompt) bool {
	_, ok := p.(interruptible)
	return ok
}

// Message asks for a message of one or more lines. The arrow keys show earlier messages.
type Message struct {
	Text string // the text; empty if the user left
	Left bool   // the user left with Ctrl-D
	// Interrupt is called for Ctrl-C while nothing is typed. It reports whether there was a turn to stop. May be nil.
	Interrupt func() bool

	input   *Input
	history []string // oldest first; the last one is being typed
	at      int      // index into history
	hint    string
}

// NewMessage returns an empty Message. history has the earlier messages, oldest first.
func NewMessage(history []string) *Message {
	m := &Message{input: NewInput(""), history: append(history[:len(history):len(history)], ""), at: len(history)}
	m.input.area.KeyMap.DeleteCharacterForward.SetKeys("delete") // Ctrl-D leaves
	return m
}

// messageHint explains how to leave.
const messageHint = "Ctrl-D or /exit leaves the chat"

// maxMessageLines limits the lines of a message, because the editor has a limit.
const maxMessageLines = 9000

const tooManyLines = "This has too many lines for a message: put the text into a file and name the file."

// linesIn counts the line ends of a pasted text. Terminals send them as carriage returns.
func linesIn(text string) int {
	return max(strings.Count(text, "\n"), strings.Count(text, "\r"))
}

func (m *Message) takesInterrupt() {}

// Again prepares the Message for another text. A text that is being typed stays.
func (m *Message) Again() {
	if m.Text == "" {
		return
	}
	m.history[len(m.history)-1] = m.Text
	m.history = append(m.history, "")
	m.Text = ""
	m.show(len(m.history)-1, "")
}

func (m *Message) update(msg tea.Msg) (tea.Cmd, bool) {
	if paste, ok := msg.(tea.PasteMsg); ok && m.input.area.LineCount()+linesIn(paste.Content) > maxMessageLines {
		m.hint = tooManyLines
		return nil, false
	}
	if key, ok := msg.(tea.KeyPressMsg); ok {
		m.hint = ""
		if done, taken := m.key(key.String()); taken {
			return nil, done
		}
	}
	cmd, done := m.input.update(msg)
	if done {
		m.Text = m.input.Text
	}
	return cmd, done
}

// key handles a key. taken is false for text and cursor movements.
func (m *Message) key(key string) (done, taken bool) {
	empty := m.input.area.Value() == ""
	switch {
	case key == "ctrl+d" && empty:
		m.Left = true
		return true, true
	case key == "ctrl+d", key == "esc":
		return false, true
	case key == "ctrl+c":
		switch {
		case !empty:
			m.show(len(m.history)-1, "")
		case m.Interrupt == nil || !m.Interrupt():
			m.hint = messageHint
		}
		return false, true
	case key == "up" && !m.input.pending && m.input.area.Line() == 0 && m.at > 0:
		m.move(-1)
		return false, true
	case key == "down" && !m.input.pending && m.input.area.Line() == m.input.area.LineCount()-1 && m.at < len(m.history)-1:
		m.move(1)
		return false, true
	}
	return false, false
}

// move shows an earlier or a later message.
func (m *Message) move(by int) {
	m.history[m.at] = m.input.area.Value()
	m.show(m.at+by, m.history[m.at+by])
}

func (m *Message) show(at int, text string) {
	m.input.pending = false
	m.at = at
	m.input.area.SetValue(text)
}

func (m *Message) view(width int) string {
	m.input.area.SetWidth(max(width, 3))
	view := m.input.area.View()
	if lines := strings.Count(m.input.area.Value(), "\n") + 1; lines > inputLines {
		view += "\n(" + oneline.Count(lines, "line") + ")"
	}
	if m.hint != "" {
		view += "\n" + m.hint
	}
	return view
}
