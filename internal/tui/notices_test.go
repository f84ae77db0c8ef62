package tui

import (
	"context"
	"errors"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/terminal/notice"
)

// A person who sees neither the list nor the task gets one notice of the tasks that begin to need them.
func TestNotices(t *testing.T) {
	env := notice.Environment{
		Getenv: func(string) string { return "" }, Hidden: func(text string) string { return text },
		Find:   func(string) error { return errors.New("none") },
		Output: func(context.Context, string, ...string) (string, error) { return "", errors.New("none") },
	}
	settings := config.Default().Notices
	settings.Terminal = "osc9"
	long := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const other = "app-a1b2"
	for name, c := range map[string]struct {
		set  func(m *Model)
		told bool
	}{
		"the window has the focus":            {func(m *Model) { m.update(tea.FocusMsg{}) }, false},
		"it has not":                          {func(m *Model) { m.update(tea.BlurMsg{}) }, true},
		"it is unknown, after a key":          {func(m *Model) { m.notices.last = long; m.update(tea.KeyPressMsg{Code: 'j', Text: "j"}) }, false},
		"it is unknown, and there was no key": {func(m *Model) { m.notices.last = long }, true},
		"the screen shows another change":     {func(m *Model) { m.update(tea.FocusMsg{}); m.review = &reviewView{task: other} }, true},
		"the screen shows the change":         {func(m *Model) { m.update(tea.FocusMsg{}); m.review = &reviewView{task: "app-e5f6"} }, false},
		"the screen shows another text":       {func(m *Model) { m.update(tea.FocusMsg{}); m.pager = &pager{task: other} }, true},
		"the screen shows its story":          {func(m *Model) { m.update(tea.FocusMsg{}); m.pager = &pager{task: "app-e5f6"} }, false},
		"a task is written":                   {func(m *Model) { m.update(tea.FocusMsg{}); m.form = newForm() }, true},
	} {
		s := newScreen(t, 80, 24)
		s.model = s.model.Announce(notice.New(settings, env))
		if s.send(cardsMsg{cards: s.source.cards}); len(s.model.notices.pending) > 0 {
			t.Errorf("%s: what was there before is announced", name)
		}
		c.set(&s.model)
		needy := sample(s.source.Now())
		for i := range needy {
			if needy[i].Section == board.Running {
				needy[i].Section, needy[i].State = board.NeedsYou, "blocked"
				needy[i].View.Status = "blocked"
			}
		}
		s.send(cardsMsg{cards: needy})
		s.send(cardsMsg{cards: needy})
		if told := len(s.model.notices.pending) == 1; told != c.told {
			t.Errorf("%s: announced: %v", name, told)
			continue
		}
		if !s.model.View().ReportFocus || newScreen(t, 80, 24).model.View().ReportFocus {
			t.Error("only a screen with notices asks for the focus")
		}
		if !c.told {
			continue
		}
		cmd := s.model.update(collectedMsg{})
		if cmd == nil {
			t.Fatalf("%s: nothing is sent", name)
		}
		const want = "\x1b]9;coven: app-e5f6 blocked: Cache the parser: implement: Bash make test\a"
		if raw, ok := cmd().(tea.RawMsg); !ok || raw.Msg != want {
			t.Errorf("%s: %q", name, raw.Msg)
		}
		if s.model.update(collectedMsg{}) != nil {
			t.Errorf("%s: it is sent again", name)
		}
	}

	s := newScreen(t, 80, 24)
	s.model = s.model.Announce(notice.New(settings, env))
	s.send(cardsMsg{})
	s.model.update(tea.BlurMsg{})
	s.send(cardsMsg{cards: s.source.cards[:1]})
	s.send(cardsMsg{})
	if s.model.update(collectedMsg{}) != nil {
		t.Error("a question that was answered in the meantime is announced")
	}
}
