package tui

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// fakeSource records the command lines of the screen.
type fakeSource struct {
	cards   []board.Card
	started [][]string
	inside  [][]string
	shown   [][]string
	text    []string
	textErr error
	fails   error
	today   budget.Day
	odd     string // in the texts of a review
	viewed  []string
	looked  int
}

func (s *fakeSource) Cards() ([]board.Card, error) { return s.cards, s.fails }
func (s *fakeSource) Today() (budget.Day, error)   { return s.today, nil }
func (s *fakeSource) Changed() error               { select {} }
func (s *fakeSource) Now() time.Time               { return time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC) }

func (s *fakeSource) Start(args []string) (func() (string, error), error) {
	s.started = append(s.started, args)
	return func() (string, error) { return "one\nlanded 1234\n", s.fails }, nil
}

func (s *fakeSource) Inside(args []string) tea.ExecCommand {
	s.inside = append(s.inside, args)
	return nil
}

func (s *fakeSource) Story(board.Card, bool) Feed { return s.Output(nil) }

func (s *fakeSource) Output(args []string) Feed {
	s.shown = append(s.shown, args)
	return func() ([]string, error) { return s.text, s.textErr }
}

func (s *fakeSource) Shell(string) tea.ExecCommand { return nil }

// sample has cards in every section.
func sample(now time.Time) []board.Card {
	view := func(status event.Status, reason event.WaitReason) session.View {
		v := session.View{ID: "2026-01-02-x", Task: "x"}
		v.Status, v.Reason, v.Worktree = status, reason, "/src/app.coven/x"
		v.Steps = []session.Step{{Path: "implement#1", Status: session.Completed, Summary: "Added the flag."}, {Path: "land#1", Status: session.Running}}
		return v
	}
	return []board.Card{
		{Section: board.NeedsYou, Task: "app-a1b2", Short: "a1", Title: "Add a --version flag", State: "waiting (review)", Text: "the change is ready for approval", Next: "coven approve app-a1b2", Cost: 0.42, Since: now.Add(-3 * time.Minute), View: view(session.Waiting, event.WaitReview)},
		{Section: board.NeedsYou, Task: "app-c3d4", Short: "c3", Title: "Überarbeite 日本語の文書 and a very long title that does not fit into any line of a terminal", State: "blocked", Text: "check make test ended with exit code 2", Next: "coven why app-c3d4", Since: now.Add(-2 * time.Hour), View: view(session.Blocked, "")},
		{Section: board.Running, Task: "app-e5f6", Short: "e5", Title: "Cache the parser", State: "running", Text: "implement: Bash make test", Cost: 1.2, Since: now.Add(-40 * time.Second), View: view(session.Running, "")},
		{Section: board.Waiting, Task: "app-g7h8", Short: "g7", Title: "Document the cache", State: "waiting", Text: "after app-e5f6"},
		{Section: board.Landed, Task: "app-i9j0", Short: "i9", Title: "Fix the typo", State: "completed", Text: "landed", Since: now.Add(-5 * time.Hour), View: view(session.Completed, "")},
	}
}

// screen is a model with its source.
type screen struct {
	t      *testing.T
	source *fakeSource
	model  Model
}

func newScreen(t *testing.T, width, height int) *screen {
	s := &screen{t: t, source: &fakeSource{}}
	s.source.cards = sample(s.source.Now())
	s.model = New(s.source)
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.send(s.model.read())
	return s
}

// send updates the model, and sends the message of its command back.
func (s *screen) send(msg tea.Msg) {
	next, cmd := s.model.Update(msg)
	s.model = next.(Model)
	if cmd == nil {
		return
	}
	if _, isKey := msg.(tea.KeyPressMsg); !isKey || s.model.asks != nil || s.model.form != nil {
		return // the blinking cursor, and the loop of reads
	}
	switch msg := cmd().(type) {
	case endedMsg, textMsg, reviewMsg:
		s.send(msg)
	case tea.QuitMsg:
		s.model.said = "quit"
	}
}

// press presses keys. Those with a name have more than one character.
func (s *screen) press(keys ...string) {
	for _, key := range keys {
		s.send(keyOf(key))
	}
}

func keyOf(name string) tea.KeyPressMsg {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "tab": tea.KeyTab, "up": tea.KeyUp, "backspace": tea.KeyBackspace}
	if code, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl}
	}
	if name == "space" {
		return tea.KeyPressMsg{Code: ' ', Text: " "}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func (s *screen) text() string { return ansi.Strip(strings.Join(s.model.lines(), "\n")) }

// No line is wider than the window, and the screen has its height.
func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{120, 30}, {80, 24}, {40, 20}, {100, 10}, {20, 5}, {5, 3}, {1, 1}} {
		s := newScreen(t, size[0], size[1])
		for _, keys := range [][]string{nil, {"j"}, {"?"}, {"x", "@"}, {"x", "G"}, {"/", "c"}} {
			s.press(keys...)
			checkFits(t, s)
			if testing.Verbose() {
				t.Logf("%v %q\n%s", size, keys, s.text())
			}
			s.press("esc", "esc")
		}
	}
}

// Each action runs the command line that the help names, for the selected task, and the log lists it.
func TestActions(t *testing.T) {
	for _, test := range []struct {
		keys    string // separated by spaces
		started string
		said    string
	}{
		{"a y", "approve app-a1b2", "coven approve app-a1b2: landed 1234"},
		{"a n", "", "nothing was done"},
		{"a enter", "", "nothing was done"},
		{"r u s e _ i t enter", "revise app-a1b2 -m use_it", "landed 1234"},
		{"r esc", "", ""},
		{"r enter", "", "nothing was done: the text is empty"},
		{"j x n o enter", "reject app-c3d4 --reason no", "landed 1234"},
		{"j a", "", "approve is not possible for this task now"},
		{"2 m h i enter", "attach app-e5f6 -m hi", "landed 1234"},
		{"n A d d tab M o r e tab o k enter t o o ctrl+s", "task add --description More --accept ok --accept too Add", "landed 1234"},
		{"n ctrl+s", "", "a task needs a title"},
		{"n - a ctrl+s", "task add -- -a", "landed 1234"},
		{"n x esc n ctrl+s", "task add x", "landed 1234"},
		{"n x esc y", "", ""},
		{"d a y", "approve app-a1b2", "coven approve app-a1b2: landed 1234"},
		{"j e", "resume app-c3d4", "landed 1234"},
		{"3 j x", "", "reject is not possible for this task now"},
		{"2 c y", "cancel app-e5f6", "landed 1234"},
		{"2 w t y", "retry app-a1b2", "landed 1234"},
		{"R", "run", "coven run: landed 1234"},
		{"/ c a c h e enter j c", "", "cancel is not possible for this task now"},
		{"q", "", "quit"},
	} {
		s := newScreen(t, 80, 24)
		s.press(strings.Fields(test.keys)...)
		var started []string
		for _, args := range s.source.started {
			started = append(started, strings.Join(args, " "))
		}
		if got := strings.Join(started, "; "); got != test.started || !strings.HasSuffix(s.model.said, test.said) {
			t.Errorf("%s: ran %q, not %q; said %q", test.keys, got, test.started, s.model.said)
		}
		s.press("q", "@")
		if test.started != "" && !strings.Contains(s.text(), "coven "+test.started) {
			t.Errorf("%s: not in the log:\n%s", test.keys, s.text())
		}
	}
}

// A budget is asked for with the suggestion of the task, and the question of an agent is answered by its number.
func TestAnswers(t *testing.T) {
	s := newScreen(t, 80, 24)
	budget, asking := &s.source.cards[1].View, &s.source.cards[2]
	budget.Status, budget.Reason, budget.More = session.Waiting, event.WaitBudget, "usd=+5"
	budget.Used.USD, budget.Limit.USD = 2.5, 5
	asking.Section, asking.View.Approvals = board.NeedsYou, []session.Approval{{Approval: event.Approval{N: 3, Tool: "bash", Subject: "rm \x1b[2J"}}}
	s.send(s.model.read())
	if s.press("j"); !strings.Contains(s.text(), "█████░░░░░ $2.50 of $5.00") {
		t.Error(s.text())
	}
	s.press("b", "0", "enter", "j", "a")
	if !strings.Contains(s.text(), "allow e5: bash rm \ufffd[2J? (y/N)") {
		t.Error(s.text())
	}
	s.press("y", "a", "enter", "x", "n", "o", "enter")
	if got := fmt.Sprint(s.source.started); got != "[[resume app-c3d4 --budget usd=+50] [approvals approve app-e5f6 3] [approvals deny app-e5f6 3 --reason no]]" {
		t.Error(got)
	}
}

// The palette splits a command line as a shell does.
func TestPalette(t *testing.T) {
	s := newScreen(t, 80, 24)
	for _, line := range []string{`revise app-a1b2 -m 'use "it"'`, "", "why 'open"} {
		s.press(":")
		s.model.input.SetValue(line)
		s.press("enter")
	}
	if got := fmt.Sprintf("%q", s.source.inside); got != `[["revise" "app-a1b2" "-m" "use \"it\""]]` || s.model.said == "" {
		t.Error(got, s.model.said)
	}
}

// The selection stays at its task when cards come and go.
func TestSelection(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.press("j", "j")
	s.source.cards = append([]board.Card{{Task: "new", Title: "New"}}, s.source.cards...)
	s.send(s.model.read())
	if s.model.selected != "app-e5f6" {
		t.Error("selected:", s.model.selected)
	}
	s.source.cards = s.source.cards[:2]
	s.send(s.model.read())
	if s.model.selected != "new" {
		t.Error("selected:", s.model.selected)
	}
	s.source.fails = errors.New("the sessions \x1b[31mcannot be read")
	s.send(s.model.read())
	if text := s.text(); !strings.Contains(text, "cannot be read") || strings.Contains(strings.Join(s.model.lines(), ""), "sessions \x1b[31m") {
		t.Error(text)
	}
}

// Random keys, pastes, mouse events and sizes break nothing, every view fits into the window, and no command that changes a task
// runs without a yes or a text.
func TestRandomKeys(t *testing.T) {
	keys := []string{
		"j", "k", "g", "G", "1", "2", "3", "4", "w", "/", "esc", "?", "@", "a", "r", "x", "c", "t", "e", "m", "b", "d", "l", "s", "p", "$", "y", "q", "M", "space", "enter",
		"down", "up", "backspace", "tab", "ctrl+s", "ctrl+u", "日", "\u202e", "z", "Z",
	}
	random := rand.New(rand.NewPCG(1, 37))
	s := newScreen(t, 80, 24)
	s.source.text, s.source.textErr = diffOf(3, 50), io.EOF
	for range 5000 {
		asked := s.model.asks
		before, key := len(s.source.started), ""
		switch random.IntN(40) {
		case 0, 1:
			s.send(tea.WindowSizeMsg{Width: random.IntN(150), Height: random.IntN(50)})
		case 2:
			s.send(tea.PasteMsg{Content: "y\n\x1b[31m\u202e\t日本"})
		case 3:
			s.send(tea.MouseClickMsg{X: random.IntN(150), Y: random.IntN(50)})
		case 4:
			s.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown + tea.MouseButton(random.IntN(2)) - 1})
		case 5:
			s.press([]string{"n", "esc", "esc"}[random.IntN(3)])
		default:
			if key = keys[random.IntN(len(keys))]; s.model.form != nil && random.IntN(5) == 0 {
				key = "esc"
			}
			s.press(key)
		}
		checkFits(t, s)
		for _, args := range s.source.started[before:] {
			text := asked != nil && asked.text && key == "enter"
			yes := asked != nil && !asked.text && (key == "y" || key == "Y")
			if free := args[0] == "resume" || args[0] == "snooze" || args[0] == "task"; !free && !text && !yes {
				t.Errorf("%q ran %q", key, args)
			}
		}
	}
	if len(s.source.started) == 0 || len(s.source.shown) == 0 {
		t.Error("nothing ran")
	}
}

// checkFits reports rows that do not fit into the window.
func checkFits(t *testing.T, s *screen) {
	t.Helper()
	lines := s.model.lines()
	if len(lines) > s.model.height {
		t.Errorf("%d lines in %d", len(lines), s.model.height)
	}
	for _, line := range lines {
		if strings.Contains(line, "\n") || ansi.StringWidth(line) > s.model.width || strings.Contains(line, "\u202e") {
			t.Errorf("%dx%d: %q", s.model.width, s.model.height, line)
		}
	}
}

// BenchmarkView draws 200 tasks.
func BenchmarkView(b *testing.B) {
	source := &fakeSource{}
	for i := range 200 {
		c := sample(source.Now())[i%5]
		c.Task = fmt.Sprint(c.Task, i)
		source.cards = append(source.cards, c)
	}
	m := New(source)
	m.width, m.height = 120, 40
	next, _ := m.Update(m.read())
	m = next.(Model)
	for b.Loop() {
		m.View()
	}
}

// The header has a bar if the day has a budget.
func TestDayBar(t *testing.T) {
	s := newScreen(t, 120, 20)
	header := func() string { return ansi.Strip(s.model.lines()[0]) }
	if strings.Contains(header(), "$") {
		t.Errorf("without a budget: %s", header())
	}
	s.source.today = budget.Day{Limit: budget.Amount{USD: 5}, Used: budget.Amount{USD: 2.5, Tokens: 100}}
	s.send(s.model.read())
	if !strings.HasSuffix(header(), "landed today  today █████░░░░░ $2.50 of $5.00") {
		t.Error(header())
	}
}
