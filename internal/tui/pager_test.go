package tui

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// diffOf returns a diff of files with lines each.
func diffOf(files, lines int) (text []string) {
	for f := range files {
		text = append(text, fmt.Sprintf("diff --git a/f%d b/f%d", f, f), "@@ -1 +1 @@")
		for n := range lines {
			text = append(text, fmt.Sprintf("+line %d of file %d \t日本語 \x1b[31mred\u202e", n, f))
		}
	}
	return text
}

// A diff is shown in the screen: it scrolls, goes to files, finds text, and keeps control characters from the terminal.
func TestPager(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.source.text, s.source.textErr = diffOf(3, 50), io.EOF
	s.press("d")
	if got := fmt.Sprint(s.source.shown); got != "[[diff app-a1b2]]" || !strings.Contains(s.text(), "$ coven diff app-a1b2") {
		t.Error(got, s.text())
	}
	if all := strings.Join(s.model.lines(), ""); strings.Contains(all, "\x1b[31mred") || strings.Contains(all, "\u202e") || !strings.Contains(all, "日本語") {
		t.Errorf("%q", all)
	}
	for _, step := range []struct{ keys, row, header string }{
		{"", "diff --git a/f0 b/f0", "file 1 of 3, line 1 of 156"},
		{"j", "@@ -1 +1 @@", "line 2"},
		{"k k", "diff --git a/f0 b/f0", "line 1 of"},
		{"n", "diff --git a/f1 b/f1", "file 2 of 3, line 53"},
		{"space", "+line 18 of file 1", "line 73"},
		{"p p", "diff --git a/f0", "file 1 of 3"},
		{"n n n", "diff --git a/f2", "file 3 of 3"},
		{"G", "+line 29 of file 2", "line 136"},
		{"g", "diff --git a/f0", "line 1 of"},
		{"/ L I N E space 7 enter", "+line 7 of file 0", "line 10"},
		{"/ enter", "+line 7 of file 1", "line 62"},
	} {
		s.press(strings.Fields(step.keys)...)
		if rows := strings.Split(s.text(), "\n"); !strings.HasPrefix(rows[1], step.row) || !strings.Contains(rows[0], step.header) {
			t.Errorf("%s: %q %q", step.keys, rows[0], rows[1])
		}
	}
	s.press("/", "z", "enter")
	if !strings.Contains(s.text(), "not found: line 7z") {
		t.Error(s.text())
	}
	s.press("esc")
	if !strings.Contains(s.text(), "Needs you") {
		t.Error(s.text())
	}
}

// The live text follows its end, until a person scrolls up. A read never overlaps another one.
func TestFollow(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.source.text = diffOf(1, 30)
	s.press("2", "l")
	if !strings.Contains(s.text(), "line 29 of file 0") || !strings.Contains(s.text(), "following") {
		t.Error(s.text())
	}
	cmd := s.model.readPager()
	if cmd == nil || s.model.readPager() != nil {
		t.Error("two reads at once")
	}
	s.press("k")
	before := strings.Split(s.text(), "\n")[1]
	next, again := s.model.Update(cmd())
	s.model = next.(Model)
	if again == nil || strings.Split(s.text(), "\n")[1] != before {
		t.Error(s.text())
	}
	s.press("G")
	s.source.text, s.source.textErr = nil, errors.New("damaged\x1b[2J")
	next, _ = s.model.Update(again())
	s.model = next.(Model)
	if s.model.pager.feed != nil || !strings.Contains(s.text(), "damaged\ufffd[2J") {
		t.Error(s.text())
	}
}

// Long lines are wrapped at every width, and the end can be reached.
func TestWrap(t *testing.T) {
	p := &pager{lines: clean([]string{strings.Repeat("日本", 200), strings.Repeat("x", 5000), "", "end"})}
	for width := 1; width < 200; width += 7 {
		p.key("g", width, 10)
		p.key("G", width, 10)
		rows := p.rows(width, 10)
		for _, row := range rows {
			if got := ansi.StringWidth(row); got > max(width, 2) {
				t.Errorf("%d: a row has %d cells", width, got)
			}
		}
		if width > 2 && rows[len(rows)-1] != "end" {
			t.Errorf("%d: %q", width, rows)
		}
	}
}

// BenchmarkDiff scrolls through a diff of 50,000 lines.
func BenchmarkDiff(b *testing.B) {
	m := New(&fakeSource{})
	m.pager = &pager{lines: clean(diffOf(100, 498)), style: func(string) string { return "32" }}
	m.width, m.height = 120, 40
	keys := []tea.KeyPressMsg{keyOf("j"), keyOf("space"), keyOf("n"), keyOf("G"), keyOf("g")}
	for i := 0; b.Loop(); i++ {
		next, _ := m.Update(keys[i%len(keys)])
		m = next.(Model)
		m.View()
	}
}

// BenchmarkClean reads a diff of 50,000 lines.
func BenchmarkClean(b *testing.B) {
	text := diffOf(100, 498)
	for b.Loop() {
		clean(text)
	}
}
