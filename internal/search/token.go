package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxToken limits the length of a term in bytes: longer runs of letters and
// digits are encoded data.
const maxToken = 64

// eachToken calls yield with the terms of a text. An identifier yields its parts, which
// are separated by camel case, underscores and digits, and the whole identifier: ReadFile and
// read_file yield read, file and readfile. A Chinese or Japanese character is a term.
func eachToken(text string, yield func(string)) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case isIdeograph(r):
			yield(text[:size])
		case isWord(r):
			for size < len(text) {
				r, n := utf8.DecodeRuneInString(text[size:])
				if !isWord(r) || isIdeograph(r) {
					break
				}
				size += n
			}
			identifier(text[:size], yield)
		}
		text = text[size:]
	}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func isIdeograph(r rune) bool {
	return r > 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// identifier yields the terms of a run of letters, digits and underscores.
func identifier(word string, yield func(string)) {
	parts := 0
	for from := 0; from < len(word); {
		size := partLength(word[from:])
		if size > 0 {
			parts++
		}
		if size > 1 && size <= maxToken && size < len(word) {
			yield(stem(strings.ToLower(word[from : from+size])))
		}
		from += max(size, 1)
	}
	whole := strings.ToLower(strings.ReplaceAll(word, "_", ""))
	switch {
	case len(whole) < 2 || len(whole) > maxToken:
	case parts > 1:
		yield(whole)
	case len(whole) == len(word): // otherwise, the only part was yielded
		yield(stem(whole))
	}
}

// partLength returns the length of the first part of a word. It is 0 for an underscore.
func partLength(word string) int {
	last, length := rune(0), 0
	for i, r := range word {
		if i > 0 && boundary(last, r, word[i+utf8.RuneLen(r):]) {
			return i
		}
		if r == '_' {
			return 0
		}
		last, length = r, i+utf8.RuneLen(r)
	}
	return length
}

// boundary reports whether a part of an identifier ends between two characters. after is
// the following text, because the last capital of HTTPServer begins a part.
func boundary(a, b rune, after string) bool {
	switch {
	case b == '_', unicode.IsDigit(a) != unicode.IsDigit(b), unicode.IsLower(a) && unicode.IsUpper(b):
		return true
	case unicode.IsUpper(a) && unicode.IsUpper(b):
		next, _ := utf8.DecodeRuneInString(after)
		return unicode.IsLower(next)
	}
	return false
}

// stem removes the most common endings of English words: caches, cached and caching become cach. The result
// need not be a real stem, but must be the same for the index and for the query.
func stem(word string) string {
	if len(word) < 4 || !ascii(word) {
		return word
	}
	switch {
	case strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
		return word
	case strings.HasSuffix(word, "s"):
		word = word[:len(word)-1]
	}
	for _, ending := range []string{"ing", "ed", "er", "e"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") {
			return undouble(rest)
		}
	}
	return word
}

// undouble removes a doubled consonant: the stem of stopped becomes stop.
func undouble(word string) string {
	n := len(word)
	if n > 3 && word[n-1] == word[n-2] && !strings.ContainsRune("lsz", rune(word[n-1])) {
		return word[:n-1]
	}
	return word
}

func ascii(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf })
}

// noise lists stop words.
var noise = strings.Fields("a an and are as at be by do does for from has have how if in into is it its not of on or so than that the their them then there these this to was we what when where which who why will with you")

// queryTerms returns the distinct terms of a query. Stop words count only if
// there are no other words.
func queryTerms(query string) []string {
	var terms, all []string
	for word := range strings.FieldsSeq(query) {
		var of []string
		eachToken(word, func(term string) { of = append(of, term) })
		all = append(all, of...)
		if !slices.Contains(noise, strings.ToLower(strings.Trim(word, ".,:;!?\"'()"))) {
			terms = append(terms, of...)
		}
	}
	if len(terms) == 0 {
		terms = all
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}
