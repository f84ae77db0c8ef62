package forgehttp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean removes terminal codes and control characters except line ends and tabs. Of a line that a carriage return overwrites, the
// last part stays.
func Clean(text string) string {
	text = ansi.Strip(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
			line = line[i+1:]
		}
		b.WriteString(strings.Map(func(r rune) rune {
			if r != '\t' && unicode.IsControl(r) {
				return -1
			}
			return r
		}, line))
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Tail returns the last complete lines of a text within limit bytes, or the end of the last line if it is longer.
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if limit <= 0 {
		return ""
	}
	text = text[len(text)-limit:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if i := strings.IndexByte(text, '\n'); i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}
	return text
}
