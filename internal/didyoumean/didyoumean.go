// Package didyoumean finds what a person probably meant by a word that is not known.
package didyoumean

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Nearest returns the known word that is most like word. Words of the same
// parts in another order come first (WriteDatabase: DatabaseWrite), then those
// that few typing errors turn into each other. It reports false when nothing is
// near, or when word itself is known.
func Nearest(word string, known []string) (string, bool) {
	if word == "" || slices.Contains(known, word) {
		return "", false
	}
	set := parts(word)
	for _, k := range known {
		if len(set) > 1 && slices.Equal(set, parts(k)) {
			return k, true
		}
	}
	best, at := "", limit(word)+1
	for _, k := range known {
		if d := distance(fold(word), fold(k)); d < at && d < len([]rune(k)) {
			best, at = k, d
		}
	}
	return best, best != ""
}

// Hint is the question that an error ends with: did you mean "x"? It is empty
// when nothing is near.
func Hint(word string, known []string) string {
	if near, ok := Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// shortWord is a word of which one letter more or less makes another word.
const shortWord = 5

// Misspelt reports whether a word is one typing error away from a known one, where it
// could as well be a word of its own. Short words are not misspelt.
func Misspelt(word string, known []string) bool {
	return len([]rune(word)) >= shortWord && slices.ContainsFunc(known, func(k string) bool {
		return distance(fold(word), fold(k)) == 1
	})
}

// limit is how many typing errors a word may hold: one in three letters.
func limit(word string) int { return max(1, len([]rune(word))/3) }

func fold(word string) []rune { return []rune(strings.ToLower(word)) }

// parts returns the lower-case words that a name is made of, sorted.
func parts(word string) []string {
	var b strings.Builder
	lower := false
	for _, r := range word {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	words := strings.Fields(b.String())
	slices.Sort(words)
	return words
}

// distance counts the letters to insert, remove, replace, or swap with the next
// one, to make b out of a.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
