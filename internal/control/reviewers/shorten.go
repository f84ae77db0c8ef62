package reviewers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/diff"
)

// shortened returns the patch of a diff with at most most bytes, and a text that names the files with missing lines. The
// files share the space: none gets more than a file that is incomplete, so that large files do not displace small ones.
func shortened(diff diff.Diff, most int) (patch, left string) {
	if len(diff.Patch) <= most {
		return diff.Patch, ""
	}
	parts := diff.Parts()
	room := most
	incomplete := map[int]string{}
	for n, i := range bySize(parts) {
		whole := parts[i]
		parts[i] = firstLines(whole, room/(len(parts)-n))
		room -= len(parts[i])
		if parts[i] != whole {
			incomplete[i] = fmt.Sprintf("%s (%d of %d lines)", diff.Files[i].Path, countLines(parts[i]), countLines(whole))
		}
	}
	var names []string
	for i := range parts {
		if name, is := incomplete[i]; is {
			names = append(names, name)
		}
	}
	shown := strings.Join(parts, "")
	return shown, fmt.Sprintf("the diff has %d KiB and %d KiB are shown; incomplete: %s", kib(len(diff.Patch)), kib(len(shown)), joinNames(names))
}

// kib converts bytes to KiB, rounded up.
func kib(n int) int { return (n + 1<<10 - 1) >> 10 }

// bySize returns the indexes of texts, the shortest first.
func bySize(texts []string) []int {
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(texts[a]), len(texts[b])) })
	return order
}

// hunkRE matches the header of a hunk.
var hunkRE = lazyregexp.New(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)`)

// longerHeader is how many bytes the header of a shortened hunk can be longer than before.
const longerHeader = len(",0,0")

// firstLines returns the first lines of a file's part of a patch as a valid patch of at most most bytes. It is empty if there
// is no space for a line.
func firstLines(part string, most int) string {
	if len(part) <= most {
		return part
	}
	text := part[:max(most-longerHeader, 0)]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	start := strings.LastIndex(text, "\n@@ ") + 1
	if start == 0 {
		return ""
	}
	if end := strings.Index(text[start:], "\ndiff --git "); end >= 0 { // the second half of a type change
		return text[:start+end+1]
	}
	header, body, _ := strings.Cut(text[start:], "\n")
	before, after, changed := 0, 0, 0
	for line := range strings.Lines(body) {
		switch line[0] {
		case ' ':
			before++
			after++
		case '-':
			before++
			changed++
		case '+':
			after++
			changed++
		}
	}
	found := hunkRE.FindStringSubmatch(header)
	switch {
	case found != nil && changed > 0:
		return text[:start] + fmt.Sprintf("@@ -%s,%d +%s,%d @@%s\n%s", found[1], before, found[2], after, found[3], body)
	case strings.Contains(text[:start], "\n@@ "):
		return text[:start]
	}
	return ""
}

// countLines counts the lines in the hunks of a file's part of a patch.
func countLines(part string) (n int) {
	in := false
	for line := range strings.Lines(part) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			in = false
		case strings.HasPrefix(line, "@@ "):
			in = true
		case in:
			n++
		}
	}
	return n
}

// maxNames limits the names of files in a text, in bytes. Reviewers get the names of all files anyway.
const maxNames = 32 << 10

// joinNames joins names for a text.
func joinNames(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if b.Len()+len(name) > maxNames {
			return fmt.Sprintf("%s and %d more of the changed files", b.String(), len(names)-i)
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}
