package review

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"pgregory.net/rapid"
)

// Git applies the patch of suggestions, and each replaces exactly its lines.
func TestPatch(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	name := "a b\t\"é.txt"
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		var lines []string
		for i := range rapid.IntRange(1, 40).Draw(t, "lines") {
			lines = append(lines, fmt.Sprint("line ", i, end))
		}
		if rapid.Bool().Draw(t, "no newline at the end") && len(lines) > 1 {
			lines[len(lines)-1] = "the last"
		}
		want := slices.Clone(lines)
		var edits []Placed
		for from := rapid.IntRange(1, 10).Draw(t, "from"); from <= len(lines); from += rapid.IntRange(1, 12).Draw(t, "gap") {
			to := min(from+rapid.IntRange(0, 3).Draw(t, "more"), len(lines))
			text := rapid.SampledFrom([]string{"new", "two\nnew lines", "a line\n", ""}).Draw(t, "text")
			edits = append(edits, Placed{Comment: Comment{Suggestion: &text}, Now: Anchor{From: from, To: to}})
			for i := from - 1; i < to; i++ {
				want[i] = ""
			}
			if text != "" {
				want[from-1] = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", end) + end
				if strings.HasSuffix(lines[to-1], "the last") {
					want[from-1] = strings.TrimSuffix(want[from-1], end)
				}
			}
			from = to
		}
		if len(edits) == 0 || strings.Join(want, "") == strings.Join(lines, "") {
			t.Skip()
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		patch := (&gitdiff.File{OldName: name, NewName: name, TextFragments: fragments(strings.SplitAfter(strings.Join(lines, ""), "\n"), edits)}).String()
		apply := exec.Command("git", "-C", dir, "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-")
		apply.Stdin = strings.NewReader(patch)
		if out, err := apply.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, patch)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != strings.Join(want, "") {
			t.Fatalf("%v: %q, want %q\n%s", err, got, strings.Join(want, ""), patch)
		}
	})
}
