package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// A table fits every width, and its columns shrink in order.
func TestTable(t *testing.T) {
	id, empty := &column{cells: []string{"ID", "bd-1", "bd-修复"}}, &column{cells: []string{"COST", "", ""}}
	title := &column{cells: []string{"TITLE", "a title of some length", "修复登录页面的错误"}}
	next := &column{cells: []string{"NEXT", "coven review bd-1", ""}}
	table := func(width int) []string {
		return tableLines(width, []*column{id, empty, title, next}, shrink{title, 12}, shrink{next, 0})
	}
	for width := 1; width <= 60; width++ {
		for _, line := range table(width) {
			if got := ansi.StringWidth(line); got > width {
				t.Errorf("%d columns of %d: %q", got, width, line)
			}
		}
	}
	for width, want := range map[int]string{
		0:  "ID       TITLE                   NEXT\nbd-1     a title of some length  coven review bd-1\nbd-修复  修复登录页面的错误",
		80: "ID       TITLE                   NEXT\nbd-1     a title of some length  coven review bd-1\nbd-修复  修复登录页面的错误",
		45: "ID       TITLE              NEXT\nbd-1     a title of some …  coven review bd-1\nbd-修复  修复登录页面的错…",
		32: "ID       TITLE         NEXT\nbd-1     a title of …  coven re…\nbd-修复  修复登录页…",
		27: "ID       TITLE\nbd-1     a title of some l…\nbd-修复  修复登录页面的错误",
		6:  "ID\nbd-1\nbd-修…",
	} {
		if got := strings.Join(table(width), "\n"); got != want {
			t.Errorf("%d columns:\n%s\nwant:\n%s", width, got, want)
		}
	}
}

// A color does not move the columns.
func TestTableColor(t *testing.T) {
	state := &column{cells: []string{"STATUS", "failed"}, color: func(row int) string { return []string{"", "31"}[row] }}
	got := tableLines(20, []*column{state, {cells: []string{"TITLE", "x"}}})
	if want := "STATUS  TITLE\n\x1b[31mfailed\x1b[m  x"; strings.Join(got, "\n") != want {
		t.Errorf("%q", got)
	}
}
