package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// ErrNoKeys is returned by Screen.Prompt if the terminal cannot report single keys. The
// question must be asked in line mode.
var ErrNoKeys = errors.New("the terminal cannot report single keys")

// Prompt is a question below the live lines. Its methods are never called concurrently.
type Prompt interface {
	// update handles a bubbletea message and reports whether the question is answered.
	update(msg tea.Msg) (later tea.Cmd, done bool)
	// view returns the text of the question.
	view(width int) string
}

// Prompt asks a question after all earlier output is shown, and returns when it is
// answered or ctx ends. Running tasks remain visible above it. Keys that were typed
// before the question appeared are discarded.
func (s *Screen) Prompt(ctx context.Context, p Prompt) error {
	if s.live == nil || s.live.keys == nil {
		return ErrNoKeys
	}
	free, err := s.ask(ctx)
	if err != nil {
		return err
	}
	defer free()
	return s.read(ctx, p)
}

// read shows a question and reads keys until it is answered.
func (s *Screen) read(ctx context.Context, p Prompt) error {
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
	// Only the screen writes to the terminal; bubbletea just interprets the keys.
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

// errYield is the cause of the end of a prompt that lets another question be asked.
var errYield = errors.New("another question is asked")

// Compose asks for a message while tasks run. Other questions withdraw it while they are open; the typed text stays.
func (s *Screen) Compose(ctx context.Context, m *Message) error {
	for {
		open, cancel := context.WithCancelCause(ctx)
		err := s.compose(open, m, func() { cancel(errYield) })
		cancel(nil)
		if !errors.Is(err, errYield) {
			return err
		}
	}
}

// compose is Compose until another question is asked.
func (s *Screen) compose(ctx context.Context, m *Message, yield func()) error {
	if s.live == nil || s.live.keys == nil {
		return ErrNoKeys
	}
	s.setYield(yield)
	defer s.setYield(nil)
	free, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer free()
	return s.read(ctx, m)
}

func (s *Screen) setYield(yield func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.yield = yield
}

// asked is the bubbletea model of an open question.
type asked struct {
	live     *Live
	answered bool // bubbletea ends with a delay; ignore keys until then
}

// Init implements tea.Model.
func (a asked) Init() tea.Cmd { return nil }

// View implements tea.Model. The live lines show the question.
func (a asked) View() tea.View { return tea.View{} }

// Update implements tea.Model.
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

// Option is an answer that is given by one key.
type Option struct {
	Key  string
	Word string // begins with Key, or is empty
	Help string
}

// Label returns the label of an option in a question, such as [a]pprove.
func (o Option) Label() string { return "[" + o.Key + "]" + strings.TrimPrefix(o.Word, o.Key) }

// Labels returns the labels of options on one line.
func Labels(options []Option) string {
	labels := make([]string, len(options))
	for i, o := range options {
		labels[i] = o.Label()
	}
	return strings.Join(labels, " ")
}

// Choice asks for one of several keys. Enter and pasted text are ignored.
type Choice struct {
	Question string
	Options  []Option
	Labels   string // names of the options; defaults to their labels
	Answer   string // the Key of the chosen option

	hint string
}

// Take accepts a key or a word as the answer. It returns false if there is no such option.
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

// Wrong returns the error text for an invalid answer.
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

// Line returns the question with its options in one line.
func (c *Choice) Line() string {
	labels := cmp.Or(c.Labels, Labels(c.Options))
	return strings.TrimPrefix(c.Question+"  "+labels, "  ")
}

func (c *Choice) view(int) string {
	line := c.Line()
	if c.hint != "" {
		line = c.hint + "\n" + line
	}
	return line
}

// Input asks for a text of one or more lines.
type Input struct {
	Question string
	Text     string // the trimmed text; empty if the user went back

	area    textarea.Model
	entered int // number of times that Enter was pressed
	pending bool
}

// inputLines limits the visible lines of a text during input.
const inputLines = 6

// NewInput returns an empty Input.
func NewInput(question string) *Input {
	area := textarea.New()
	area.SetStyles(textarea.Styles{}) // no colors
	area.ShowLineNumbers, area.Prompt = false, "> "
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight = true, 1, inputLines, 0
	area.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	area.KeyMap.Paste.SetEnabled(false) // it would read the clipboard; terminals paste by themselves
	area.Focus()
	return &Input{Question: question, area: area}
}

// Typed returns the trimmed text so far.
func (i *Input) Typed() string { return strings.TrimSpace(i.area.Value()) }

// settled is sent when no key followed an Enter for settleTime.
type settled struct{ entered int }

// settleTime is how long an Enter waits for more input. If the terminal does not
// mark pasted text, more text follows immediately, and the Enter is part of it.
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

// breakLine converts a pending Enter to a line break.
func (i *Input) breakLine() {
	if i.pending {
		i.area.InsertString("\n")
	}
	i.pending = false
}

// finish accepts the text as the answer, unless it is empty.
func (i *Input) finish() bool {
	i.pending = false
	i.Text = i.Typed()
	return i.Text != ""
}

func (i *Input) view(width int) string {
	i.area.SetWidth(max(width, 3))
	return i.Question + "(Enter: done, Alt-Enter: new line, Esc: back)\n" + i.area.View()
}
