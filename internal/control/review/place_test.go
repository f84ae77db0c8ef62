package review

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A line that a change keeps is found at its new place, and lines that it changes or separates are not.
func TestShift(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "lines")
		old := make([]string, n)
		for i := range old {
			old[i] = fmt.Sprintf("line %d", i)
		}
		next := slices.Clone(old)
		for i := range rapid.IntRange(1, 8).Draw(t, "edits") {
			at := rapid.IntRange(0, len(next)).Draw(t, "at")
			switch edit := rapid.SampledFrom([]string{"add", "delete", "change"}).Draw(t, "edit"); {
			case edit == "add" || at == len(next):
				next = slices.Insert(next, at, fmt.Sprintf("new %d", i))
			case edit == "delete":
				next = slices.Delete(next, at, at+1)
			default:
				next[at] = fmt.Sprintf("changed %d", i)
			}
		}
		if slices.Equal(old, next) {
			return
		}
		patch := diffOf(t, dir, old, next)
		from := rapid.IntRange(1, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		want := slices.Index(next, old[from-1]) + 1
		kept := want > 0 && want+to-from <= len(next) && slices.Equal(next[want-1:want+to-from], old[from-1:to])
		got, ok := shift(patch, from, to)
		if ok != kept || ok && got != want {
			t.Fatalf("lines %d to %d: at %d, %v, want %d, %v\n%s", from, to, got, ok, want, kept, patch)
		}
	})
}

func diffOf(t *rapid.T, dir string, old, next []string) string {
	for name, lines := range map[string][]string{"old": old, "new": next} {
		text := strings.Join(append(lines, ""), "\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "--", "old", "new")
	cmd.Dir = dir
	patch, _ := cmd.Output() // it fails if there are differences
	return string(patch)
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]string{
		"a.go:1": "{a.go new 1 1}", "a.go:2-4": "{a.go new 2 4}", "a.go:-3": "{a.go old 3 3}", "a.go:-3-5": "{a.go old 3 5}",
		"a b:c.go:7": "{a b:c.go new 7 7}", "a.go": "", "a.go:0": "", ":1": "", "a.go:4-2": "", "a.go:1234567890": "", "a.go:1-": "", "a.go:+1": "",
	} {
		a, err := ParsePlace(text)
		got := ""
		if err == nil {
			if got = fmt.Sprint(struct {
				path     string
				side     Side
				from, to int
			}{a.Path, a.Side, a.From, a.To}); a.Place() != text {
				t.Errorf("%s: the place is %s", text, a.Place())
			}
		}
		if got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
