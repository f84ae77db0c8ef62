// Package oneline formats texts of any shape for one line of output.
package oneline

import "strings"

// Of returns text with each run of white space replaced by one space.
func Of(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns at most the first n characters of text as one line. The last character
// is an ellipsis if something is missing.
func Clip(text string, n int) string {
	text = Of(text)
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
