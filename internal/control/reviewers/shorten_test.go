package reviewers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"pgregory.net/rapid"

	"github.com/coven-run/coven/worktree/diff"
)

// add adds the patch of a file with two hunks, which have the given numbers of changed lines of 10 bytes. The patch of a
// type change has a section for each hunk.
func add(d *diff.Diff, path, status string, first, second int) {
	d.Files = append(d.Files, diff.FileChange{Path: path, Status: status})
	header := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nindex 1..2 100644\n--- a/%[1]s\n+++ b/%[1]s\n", path)
	d.Patch += header + fmt.Sprintf("@@ -1,2 +1,%d @@ func f()\n a\n%s b\n", first+2, strings.Repeat("+an added\n", first))
	if status == "T" {
		d.Patch += header
	}
	d.Patch += fmt.Sprintf("@@ -11,%d +%d @@\n%s d\n", second+1, 11+first, strings.Repeat("-a deleted\n", second))
}

func TestShortened(t *testing.T) {
	for name, test := range map[string]struct {
		files [][2]int // lines in the hunks
		left  string
	}{
		"all of it":                     {[][2]int{{1, 1}, {2, 0}}, ""},
		"nothing":                       {nil, ""},
		"a large one before a small":    {[][2]int{{100000, 1}, {1, 1}}, "the diff has 977 KiB and 4 KiB are shown; incomplete: f0 (388 of 100004 lines)"},
		"a large one after a small":     {[][2]int{{1, 1}, {100000, 1}}, "the diff has 977 KiB and 4 KiB are shown; incomplete: f1 (388 of 100004 lines)"},
		"two large ones and a small":    {[][2]int{{900, 0}, {5, 0}, {0, 900}}, "the diff has 19 KiB and 4 KiB are shown; incomplete: f0 (188 of 903 lines), f2 (172 of 903 lines)"},
		"only the second hunk is large": {[][2]int{{3, 500}}, "the diff has 6 KiB and 4 KiB are shown; incomplete: f0 (364 of 506 lines)"},
	} {
		var d diff.Diff
		for i, lines := range test.files {
			add(&d, fmt.Sprintf("f%d", i), "M", lines[0], lines[1])
		}
		patch, left := shortened(d, 4<<10)
		if left != test.left || len(patch) > 4<<10 {
			t.Errorf("%s: %d bytes, %q, want %q", name, len(patch), left, test.left)
		}
		for i := range d.Files {
			if !strings.Contains(patch, fmt.Sprintf("+++ b/f%d\n", i)) {
				t.Errorf("%s: f%d is not shown:\n%.300s", name, i, patch)
			}
		}
	}
	var d diff.Diff
	for i := range 3000 {
		add(&d, fmt.Sprintf("f%d", i), "M", 1, 1)
	}
	patch, left := shortened(d, 4<<10)
	if len(patch) > 4<<10 || !strings.HasPrefix(left, "the diff has 406 KiB and 4 KiB are shown; incomplete: f0 (0 of 5 lines), f1 (0 of 5 lines), ") ||
		!strings.HasSuffix(left, " more of the changed files") || len(left) > 33<<10 {
		t.Errorf("many: %d bytes, %d bytes: %.200s", len(patch), len(left), left)
	}
}

// A shortened patch is valid, and has the beginning of each file's patch. Each incomplete file is named, and a file is
// complete if it needs at most its share of the space.
func TestShortenedIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d diff.Diff
		for i := range rapid.IntRange(1, 8).Draw(t, "files") {
			lines := rapid.SampledFrom([]int{1, 3, 30, 300})
			add(&d, fmt.Sprintf("f%d", i), rapid.SampledFrom([]string{"M", "T"}).Draw(t, "status"), lines.Draw(t, "first"), lines.Draw(t, "second"))
		}
		most := rapid.IntRange(0, 9000).Draw(t, "most")
		shown, left := shortened(d, most)
		if len(shown) > most {
			t.Errorf("%d bytes of %d", len(shown), most)
		}
		if _, _, err := gitdiff.Parse(strings.NewReader(shown)); err != nil {
			t.Fatalf("%v:\n%s", err, shown)
		}
		for i, part := range d.Parts() {
			path := d.Files[i].Path
			lines := content(shown, path)
			whole := content(part, path)
			switch named := strings.Contains(left, path+" ("); {
			case !strings.HasPrefix(whole, lines):
				t.Errorf("%s: %q is not the beginning of %q", path, lines, whole)
			case named != (lines != whole):
				t.Errorf("%s is incomplete: %v, named: %v", path, lines != whole, named)
			case named && len(part) <= most/len(d.Files):
				t.Errorf("%s has %d bytes, and is incomplete", path, len(part))
			}
		}
	})
}

// content returns the lines in the hunks of a file.
func content(patch, path string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			in = strings.HasPrefix(line, "diff --git a/"+path+" ")
		case in && strings.ContainsRune(" +-", rune(line[0])) && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ "):
			b.WriteString(line)
		}
	}
	return b.String()
}
