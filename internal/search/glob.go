package search

import (
	"bytes"
	"slices"
	"strings"
)

// anywhere converts a glob to a pattern for whole paths. As in git, a glob without a slash
// matches names, and a leading slash only anchors the glob.
func anywhere(glob string) string {
	if anchored, ok := strings.CutPrefix(glob, "/"); ok {
		return anchored
	}
	if !strings.Contains(glob, "/") {
		return "**/" + glob
	}
	return glob
}

// maxAlternatives limits the combinations of alternatives in the braces of a glob: {a,b}{c,d} has
// 4. All of them may be tried for each file.
const maxAlternatives = 1000

// alternatives returns the number of combinations. The result may be too low above the limit.
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

// sniffed is the number of bytes that determine whether a file is binary, as in git.
const sniffed = 8000

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}
