package terminal

import "github.com/coven-run/coven/internal/text/oneline"

// Clip returns a text as one printable line of at most n characters.
func Clip(text string, n int) string { return Printable(oneline.Clip(text, n)) }

// Colon returns a colon and the text on one line, or "" for an empty text.
func Colon(text string) string {
	if text = oneline.Of(text); text != "" {
		return ": " + text
	}
	return ""
}
