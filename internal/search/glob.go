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

func unique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// sniffed is the number of bytes that determine whether a file is binary, as in git.
const sniffed = 8000

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}
