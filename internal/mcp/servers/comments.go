package servers

import (
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Both expressions also match strings, so that nothing is found inside of one.
var (
	comments       = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*(?s:.*?)\*/`)
	trailingCommas = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"|,\s*[}\]]`)
)

// plainJSON replaces comments and trailing commas, which several programs allow, by spaces. Everything else stays in its
// line.
func plainJSON(text string) string {
	text = comments.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '"' {
			return found
		}
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, found)
	})
	return trailingCommas.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '"' {
			return found
		}
		return " " + found[1:]
	})
}
