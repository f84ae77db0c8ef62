// Package oneline formats arbitrary text for one line of output.
package oneline

import (
	"strconv"
	"strings"
)

// Of returns text with each run of white space replaced by one space.
func Of(text string) string { return strings.Join(strings.Fields(text), " ") }

// Count returns a number with a noun, such as "1 task" or "2 tasks". The plural of the noun must end in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Clip returns at most the first n characters of text as one line. The last character
// is an ellipsis if text was cut.
func Clip(text string, n int) string {
	text = Of(text)
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// List joins names with commas. After five it says how many more there are.
func List(names []string) string {
	const most = 5
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}
