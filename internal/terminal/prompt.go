package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// ErrNoKeys is returned by Screen.Prompt if the terminal cannot report single keys: the
// question has to be asked in lines.
var ErrNoKeys = errors.New("the terminal cannot report single keys")

// Prompt is a question below the live lines. Its methods are not called at the same time.
type Prompt interface {
	// update takes a message of bubbletea and reports whether the question is answered.
	update(msg tea.Msg) (later tea.Cmd, done bool)
	// view returns the lines of the question.
	view(width int) string
}

// Prompt asks a question after everything before it is shown, and returns when it is
// answered or ctx ends. Running tasks are shown above it meanwhile. Keys that were typed
// before the question was on the screen are discarded.
func (s *Screen) Prompt(ctx context.Context, p Prompt) error {
	if s.live == nil || s.live.keys == nil {
		return ErrNoKeys
	}
	free, err := s.ask(ctx)
	if err != nil {
		return err
	}
	defer free()
	var failed error
	if err := s.between(ctx, func() { failed = s.live.open(p) }); err != nil {
		return err
	}
	defer s.live.close()
	if failed != nil {
		return failed
	}
	keys, err := s.live.keys.reader()
	if err != nil {
		return err
	}
	defer keys.close()
	// The screen stays the only writer: bubbletea interprets the keys.
	_, err = tea.NewProgram(asked{live: s.live}, tea.WithContext(ctx), tea.WithInput(keys), tea.WithOutput(io.Discard),
		tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithEnvironment([]string{"TERM=" + s.live.term})).Run()
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case cause != nil:
		return cause
	}
	return fmt.Errorf("read the answer: %w", err)
}

// asked is an open question as bubbletea sees it.
type asked struct {
	live     *Live
	answered bool // bubbletea ends a little later: what is typed until then changes nothing
}

// Init starts nothing.
func (a asked) Init() tea.Cmd { return nil }

// View returns nothing: the live lines show the question.
func (a asked) View() tea.View { return tea.View{} }

// Update gives a message to the question and shows what became of it.
func (a asked) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if a.answered {
		return a, nil
	}
	if key, ok := msg.(tea.KeyPressMsg); ok && key.String() == "ctrl+z" {
		a.live.suspend()
		return a, nil
	}
	cmd, done := a.live.answer(msg)
	if a.answered = done; done {
		cmd = tea.Quit
	}
	return a, cmd
}

// Option is an answer that one key gives.
type Option struct {
	Key  string
	Word string // begins with Key, or is empty
	Help string
}

// Label returns how a question names an option: [a]pprove.
func (o Option) Label() string { return "[" + o.Key + "]" + strings.TrimPrefix(o.Word, o.Key) }

// Labels returns the labels of options on one line.
func Labels(options []Option) string {
	labels := make([]string, len(options))
	for i, o := range options {
		labels[i] = o.Label()
	}
	return strings.Join(labels, " ")
}

// Choice asks for one of several keys. Enter and pasted text are no answer.
type Choice struct {
	Question string
	Options  []Option
	Labels   string // names the options; empty: by their keys and words
	Answer   string // the Key of the chosen option

	hint string
}

// Take takes an answer: a key or a word. It reports whether there is such an option.
func (c *Choice) Take(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, o := range c.Options {
		if text == o.Key || text != "" && text == o.Word {
			c.Answer = o.Key
			return true
		}
	}
	return false
}

// Wrong returns what to say about an answer that does not exist.
func (c *Choice) Wrong(text string) string {
	return fmt.Sprintf("%s is not a valid answer: %s", Printable(fmt.Sprintf("%q", text)), Labels(c.Options))
}

func (c *Choice) update(msg tea.Msg) (later tea.Cmd, done bool) {
	key, ok := msg.(tea.KeyPressMsg)
	if !ok || key.Text == "" {
		return nil, false
	}
	if c.Take(key.Text) {
		return nil, true
	}
	c.hint = c.Wrong(key.Text)
	return nil, false
}

// Line returns the question with its options.
func (c *Choice) Line() string {
	labels := c.Labels
	if labels == "" {
		labels = Labels(c.Options)
	}
	return strings.TrimPrefix(c.Question+"  "+labels, "  ")
}

func (c *Choice) view(int) string {
	line := c.Line()
	if c.hint != "" {
		line = c.hint + "\n" + line
	}
	return line
}

// Input asks for a text of one or several lines.
type Input struct {
	Question string
	Text     string // what was typed, trimmed; empty: the user went back

	area    textarea.Model
	entered int // how often Enter was pressed; 0: it is not pending
	pending bool
}

// inputLines is how many lines of a text are seen while it is typed.
const inputLines = 6

// NewInput returns an empty Input.
func NewInput(question string) *Input {
	area := textarea.New()
	area.SetStyles(textarea.Styles{}) // no colors
	area.ShowLineNumbers, area.Prompt = false, "> "
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight = true, 1, inputLines, 0
	area.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	area.KeyMap.Paste.SetEnabled(false) // would read the clipboard; terminals paste by themselves
	area.Focus()
	return &Input{Question: question, area: area}
}

// Typed returns what was typed so far, trimmed.
func (i *Input) Typed() string { return strings.TrimSpace(i.area.Value()) }

// settled arrives when nothing was typed shortly after an Enter.
type settled struct{ entered int }

// settleTime is how long an Enter waits for more: the text of a paste that the terminal does
// not mark follows at once, and then the Enter is a part of it.
const settleTime = 50 * time.Millisecond

func (i *Input) update(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case settled:
		return nil, i.pending && msg.entered == i.entered && i.finish()
	case tea.PasteMsg:
		i.breakLine()
	case tea.KeyPressMsg:
		i.breakLine()
		switch msg.String() {
		case "esc":
			i.Text = ""
			return nil, true
		case "enter":
			i.entered, i.pending = i.entered+1, true
			entered := i.entered
			return tea.Tick(settleTime, func(time.Time) tea.Msg { return settled{entered} }), false
		}
	}
	var cmd tea.Cmd
	i.area, cmd = i.area.Update(msg)
	return cmd, false
}

// breakLine makes a pending Enter a part of the text.
func (i *Input) breakLine() {
	if i.pending {
		i.area.InsertString("\n")
	}
	i.pending = false
}

// finish takes the text as the answer. It reports whether there is any.
func (i *Input) finish() bool {
	i.pending = false
	i.Text = i.Typed()
	return i.Text != ""
}

func (i *Input) view(width int) string {
	i.area.SetWidth(max(width, 3))
	return i.Question + "(Enter: done, Alt-Enter: new line, Esc: back)\n" + i.area.View()
}
