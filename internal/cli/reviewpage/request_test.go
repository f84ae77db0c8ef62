package reviewpage

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"short":       {"a short line\n\nand another", "a short line\n\nand another"},
		"long":        {"the quick brown fox jumps over the dog", "the quick brown fox\njumps over the dog"},
		"list":        {"- the quick brown fox jumps over\n- x", "- the quick brown\n  fox jumps over\n- x"},
		"indented":    {"    the quick brown fox jumps", "    the quick brown\n    fox jumps"},
		"a long word": {"see https://example.invalid/a/b/c now", "see\nhttps://example.invalid/a/b/c\nnow"},
		"code":        {"```\nthe quick brown fox jumps over\n```\nthe quick brown fox jumps", "```\nthe quick brown fox jumps over\n```\nthe quick brown fox\njumps"},
		"CRLF":        {"one\r\ntwo", "one\ntwo"},
		"wide":        {"登录 登录 登录 登录 登录", "登录 登录 登录 登录\n登录"},
		"deep":        {strings.Repeat(" ", 18) + "a b c d", strings.Repeat(" ", 18) + "a\n" + strings.Repeat(" ", 10) + "b c d"},
	} {
		if got := wrap(c.text, 20); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// Only unbreakable text is wider than the terminal.
func TestFit(t *testing.T) {
	text := strings.Repeat("some words of a request that goes on for long ", 20)
	p := control.Page{Request: control.Request{Description: text, Acceptance: "- " + text, Design: text, Notes: text}}
	if got := Fit(p, 0); got.Request != p.Request {
		t.Error("the request was wrapped without a terminal")
	}
	for line := range strings.Lines(requestText(Fit(p, 60))) {
		if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// Open findings come first and once, with their effect; others follow.
func TestFindings(t *testing.T) {
	leak := reviewer.Finding{Severity: reviewer.Error, File: "a.txt", Line: 1, Message: "leaks the token"}
	style := reviewer.Finding{Severity: reviewer.Warning, Message: "long lines"}
	opinions := []event.Opinion{
		{Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Fail, Findings: []reviewer.Finding{style, leak}}},
		{Opinion: arbiter.Opinion{Reviewer: "mute", Verdict: reviewer.Fail}},
		{Opinion: arbiter.Opinion{Reviewer: "glad", Verdict: reviewer.Pass}},
	}
	unnamed := reviewer.Finding{Severity: reviewer.Error, Message: "mute says fail and names no finding"}
	p := control.Page{View: session.View{History: session.History{
		Rounds: []session.Round{{Path: "review#1", Opinions: opinions}},
		Open:   []event.Finding{{Reviewer: "lint", Finding: leak}, {Reviewer: "mute", Finding: unnamed}},
	}}}
	want := `
Open findings, which block the approval unless you accept them (--accept-findings):
  error: a.txt:1: leaks the token (lint)
  error: mute says fail and names no finding (mute)

Findings:
  warning: long lines (lint)
  review: lint fail, 1 error, 1 warning; mute fail, nothing found; glad pass, nothing found
`
	if got := openText(p) + "\nFindings:\n" + findingsText(p); got != want {
		t.Errorf("got:%s", got)
	}
	p.View.Open = nil // they were accepted
	if got := openText(p) + findingsText(p); !strings.HasPrefix(got, "  error: a.txt:1: leaks the token (lint)\n  warning: long lines (lint)\n  mute says fail and names no finding\n") {
		t.Errorf("accepted:\n%s", got)
	}
	if got := findingsText(control.Page{}); got != "  not reviewed\n" {
		t.Errorf("without a review: %s", got)
	}
}
