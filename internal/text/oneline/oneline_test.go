package oneline_test

import (
	"testing"

	"github.com/coven-run/coven/internal/text/oneline"
)

func TestClip(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{" a\n\tb ", 3, "a b"},
		{"abcd", 4, "abcd"},
		{"abcde", 4, "abc…"},
		{"äöüß!", 4, "äöü…"},
		{"", 1, ""},
	} {
		if got := oneline.Clip(test.text, test.n); got != test.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", test.text, test.n, got, test.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 tasks", 1: "1 task", 2: "2 tasks", 1000: "1000 tasks"} {
		if got := oneline.Count(n, "task"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
