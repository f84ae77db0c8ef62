package project

import (
	"slices"
	"unicode"
)

// Bounds for the length of short IDs, in characters. Short IDs may exceed them to be unique.
const (
	minShort = 8
	maxShort = 24
)

// ShortIDs returns a unique prefix of each ID for people to read and type. It has at least
// minShort characters and ends at the end of a word. An ID that is
// a prefix of another one is not shortened.
func ShortIDs(ids []string) map[string]string {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	short := make(map[string]string, len(sorted))
	for i, id := range sorted {
		unique := 0 // length of the shortest prefix that differs from both neighbors, in characters
		for _, at := range []int{i - 1, i + 1} {
			if at >= 0 && at < len(sorted) {
				unique = max(unique, common(id, sorted[at])+1)
			}
		}
		short[id] = shorten([]rune(id), unique)
	}
	return short
}

// common returns the length of the common prefix of two IDs, in characters.
func common(a, b string) int {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// shorten truncates an ID after the word that contains its character number unique.
func shorten(id []rune, unique int) string {
	end := max(unique, minShort)
	for end < len(id) && end < maxShort && (unicode.IsLetter(id[end]) || unicode.IsDigit(id[end])) {
		end++
	}
	return string(id[:min(end, len(id))])
}
