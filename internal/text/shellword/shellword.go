// Package shellword formats text as words of a POSIX shell.
package shellword

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Quote returns s in single quotes. The shell reads the result as one word, or as part
// of a word, regardless of adjacent text.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Word returns s as one word for people to read and copy, with quotes only
// where a shell needs them. Words with ! or with unprintable characters are in single quotes: an
// interactive shell expands ! even in double quotes, and a POSIX shell has no escapes for
// unprintable characters.
func Word(s string) string {
	word, err := syntax.Quote(s, syntax.LangPOSIX)
	if err != nil || strings.Contains(s, "!") {
		return Quote(s)
	}
	return word
}
