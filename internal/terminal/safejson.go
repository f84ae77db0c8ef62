package terminal

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// SafeJSON is the same JSON value with nothing in its texts that a terminal obeys:
// control characters beyond ASCII, and those that turn the order of others round, are
// written as \uXXXX. What is no UTF-8 becomes U+FFFD, as readers of JSON take it.
func SafeJSON(text []byte) []byte {
	safe := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			safe = append(safe, `\ufffd`...)
		case obeyed(r):
			safe = fmt.Appendf(safe, `\u%04x`, r)
		default:
			safe = append(safe, text[:n]...)
		}
		text = text[n:]
	}
	return safe
}

// obeyed reports whether terminals act upon a character that JSON leaves as it is.
func obeyed(r rune) bool { return r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) }
