package search

import (
	"bytes"
	"slices"
	"strings"
)

// anywhere returns a pattern that matches whole paths: like git, one without a slash is
// about names, and a slash at the start only anchors.
func anywhere(glob string) string {
	if anchored, ok := strings.CutPrefix(glob, "/"); ok {
		return anchored
	}
	if !strings.Contains(glob, "/") {
		return "**/" + glob
	}
	return glob
}

// maxAlternatives limits the combinations of the alternatives in the braces of a glob: {a,b}{c,d} has
// 4. All of them may be tried for each file.
const maxAlternatives = 1000

// alternatives returns the number of combinations, or one above the limit.
func alternatives(glob string) int {
	all, open := 1, []int{}
	for _, c := range glob {
		switch last := len(open) - 1; {
		case c == '{':
			open = append(open, 1)
		case c == ',' && last >= 0:
			open[last]++
		case c == '}' && last >= 0:
			if all *= open[last]; all > maxAlternatives {
				return all
			}
			open = open[:last]
		}
	}
	return all
}

func unique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// sniffed is how much of a file decides whether it is binary, as in git.
const sniffed = 8000

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}
