package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/reviewer"
)

func (s *fakeSource) Review(task string, _ review.Extent, last string) (review.Review, []review.File, error) {
	at := review.Anchor{Path: "a.go", Side: review.New, From: 2, To: 2}
	draft := review.Placed{Comment: review.Comment{ID: "c1", Anchor: at, Text: "Why?" + s.odd}, State: review.Draft, Now: at}
	r := review.Review{Last: last, Comments: []review.Placed{draft}}
	r.Page.View.Task, r.Page.View.Status = task, session.Waiting
	return r, []review.File{
		{Path: "a.go", Status: "M", Added: 2, Deleted: 1, FromStart: last == "", Viewed: slices.Contains(s.viewed, "a.go"), Hunks: []review.Hunk{{Header: "@@ -1,2 +1,3 @@", Lines: []review.Line{
			{Op: gitdiff.OpContext, Old: 1, New: 1, Text: "package a"},
			{Op: gitdiff.OpDelete, Old: 2, Text: "const limit = 10"},
			{Op: gitdiff.OpAdd, New: 2, Text: "const limit = 100" + s.odd, Comments: r.Comments},
			{Op: gitdiff.OpAdd, New: 3, Text: "\tconst 日本語 = 1", Findings: []review.Finding{{Finding: reviewer.Finding{Severity: reviewer.Error, Message: "A finding"}, By: "lint", Open: true}}},
		}}}},
		{Path: "go.sum", OldPath: "old.sum", Status: "R", Added: 1, Generated: true, Hunks: []review.Hunk{{Header: "@@ -0,0 +1 @@", Lines: []review.Line{{Op: gitdiff.OpAdd, New: 1, Text: "generated line"}}}}},
		{Path: "logo.png", Status: "A", Binary: true},
	}, s.fails
}

func (s *fakeSource) Viewed(_ review.Review, path string, viewed bool) error {
	s.viewed = slices.DeleteFunc(s.viewed, func(p string) bool { return p == path })
	if viewed {
		s.viewed = append(s.viewed, path)
	}
	return nil
}

func (s *fakeSource) Looked(review.Review) error { s.looked++; return nil }

// The review shows the lines with comments and findings, and its keys run command lines of coven.
func TestReview(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.source.odd = "\x1b]0;x\a\x1b[2J"
	s.press("v")
	text := s.text()
	for _, want := range []string{"Review of app-a1b2", "the whole change", "1 to send", "▾ M a.go  +2 -1", "   2      -const limit = 10", "        2 +const limit = 100", "c1 (draft): Why?", "error: A finding (lint)", "▸ R go.sum from old.sum", "A logo.png  binary"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "generated line") || strings.ContainsAny(strings.Join(s.model.lines(), ""), "\a") || s.source.looked != 1 {
		t.Errorf("looked %d times at\n%q", s.source.looked, text)
	}
	for _, step := range []struct {
		keys []string
		want string
	}{
		{[]string{"j", "j", "c", "O", "h", "enter"}, `["review" "app-a1b2" "--comment" "a.go:1" "Oh"]`},
		{[]string{"j", "c", "-", "x", "enter"}, `["review" "--comment" "a.go:-2" "--" "app-a1b2" "-x"]`},
		{[]string{"j", "s", "y", "enter"}, `["review" "app-a1b2" "--suggest" "a.go:2" "y"]`},
		{[]string{"V", "j", "j", "c", "z", "enter"}, `["review" "app-a1b2" "--comment" "a.go:2-3" "z"]`},
		{[]string{"k", "D"}, `["review" "app-a1b2" "--discard" "c1"]`},
		{[]string{"S", "y"}, `["review" "app-a1b2" "--send"]`},
		{[]string{"a", "y"}, `["approve" "app-a1b2"]`},
	} {
		s.press(step.keys...)
		if got := fmt.Sprintf("%q", s.source.started[len(s.source.started)-1]); got != step.want {
			t.Errorf("%q: %s, want %s", step.keys, got, step.want)
		}
	}
	s.model.review.reading.end() // the test does not read again after a command
	s.press("S", "n", "g", "c")  // no line is selected
	if !strings.Contains(s.text(), "select a line") || s.model.asks != nil {
		t.Errorf("on a heading:\n%s", s.text())
	}
	s.press("n", "enter", "g", "u")
	if text := s.text(); !strings.Contains(text, "generated line") || !strings.Contains(text, "▸ M a.go  +2 -1  viewed") {
		t.Errorf("unfolded and viewed:\n%s", text)
	}
	s.press("q")
	if !strings.Contains(s.text(), "Needs you") {
		t.Errorf("back:\n%s", s.text())
	}
}

// An unfinished comment is there when its line is commented on again.
func TestUnfinishedComment(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.press("v", "j", "j", "c", "O", "h", "esc", "j", "c")
	if got := s.model.input.Value(); got != "" {
		t.Errorf("on another line: %q", got)
	}
	s.press("esc", "k", "c", "!", "enter")
	if got := fmt.Sprintf("%q", s.source.started); got != `[["review" "app-a1b2" "--comment" "a.go:1" "Oh!"]]` {
		t.Error(got)
	}
}
