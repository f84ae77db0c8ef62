package shellword_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/text/shellword"
)

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"bd-12":      "bd-12",
		"src/a.go":   "src/a.go",
		"":           "''",
		"a b":        "'a b'",
		"it's":       `"it's"`,
		"it's $HOME": `"it's \$HOME"`,
		"it's!":      `'it'\''s!'`,
		"a!b":        "'a!b'",
		"a\nb":       "'a\nb'",
		"a;b":        "'a;b'",
		"do":         "'do'",
		"~":          "'~'",
	} {
		if got := shellword.Word(text); got != want {
			t.Errorf("Word(%q) = %s, want %s", text, got, want)
		}
	}
}

// A text with arbitrary bytes arrives as one argument.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a b", "'", `\'`, "it's", "it's!", "$(id)", "`id`", "\n", "-n", "é\xff", "*", "~", "do", "a=b", "{a,b}", "%s", "#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			t.Skip("no argument holds a NUL byte")
		}
		for _, word := range []string{shellword.Quote(text), shellword.Word(text)} {
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '<%s>' "+word).Output()
			if want := "<" + text + ">"; err != nil || string(out) != want {
				t.Fatalf("%s: got %q, %v, want %q", word, out, err, want)
			}
		}
	})
}
