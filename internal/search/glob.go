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

func unique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// sniffed is how much of a file decides whether it is binary, as in git.
const sniffed = 8000

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}
