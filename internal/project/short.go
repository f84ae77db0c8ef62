package project

import (
	"slices"
	"unicode"
)

// The length of short IDs, in characters. Both limits yield to uniqueness.
const (
	minShort = 8
	maxShort = 24
)

// ShortIDs returns a beginning of each ID that no other of the IDs begins with, for people
// to read and type: at least minShort characters, up to the end of a word. An ID that is
// the beginning of another one has no shorter form.
func ShortIDs(ids []string) map[string]string {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	short := make(map[string]string, len(sorted))
	for i, id := range sorted {
		unique := 0 // the shortest beginning that neither neighbor has, in characters
		for _, at := range []int{i - 1, i + 1} {
			if at >= 0 && at < len(sorted) {
				unique = max(unique, common(id, sorted[at])+1)
			}
		}
		short[id] = shorten([]rune(id), unique)
	}
	return short
}

// common returns how many characters two IDs have in common at the beginning.
func common(a, b string) int {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// shorten cuts an ID after the word that contains its character number unique.
func shorten(id []rune, unique int) string {
	end := max(unique, minShort)
	for end < len(id) && end < maxShort && (unicode.IsLetter(id[end]) || unicode.IsDigit(id[end])) {
		end++
	}
	return string(id[:min(end, len(id))])
}
