// Package didyoumean suggests a known word for an unknown one.
package didyoumean

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Nearest returns the known word that is most similar to word. It prefers a word with the
// same parts in another order (DatabaseWrite for WriteDatabase) to a word that differs
// by few typing errors. It returns false if no word is similar, or if word itself is
// known.
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

// Hint returns the question `did you mean "x"?` for the end of an error message. It is
// empty if no word is similar.
func Hint(word string, known []string) string {
	if near, ok := Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// Aside returns Hint in parentheses after a space, or "".
func Aside(word string, known []string) string {
	if hint := Hint(word, known); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}

// shortWord is the length below which a typing error often makes another valid word.
const shortWord = 5

// Misspelt reports whether word differs from a known word by
// one typing error. Short words are never misspelt.
func Misspelt(word string, known []string) bool {
	return len([]rune(word)) >= shortWord && slices.ContainsFunc(known, func(k string) bool {
		return distance(fold(word), fold(k)) == 1
	})
}

// limit returns the number of typing errors allowed in a word: one per three letters.
func limit(word string) int { return max(1, len([]rune(word))/3) }

func fold(word string) []rune { return []rune(strings.ToLower(word)) }

// parts returns the words in a name, in lower case and sorted.
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

// distance returns the number of edits that turn a into b. An edit inserts, removes or replaces a
// letter, or swaps two neighbors.
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
