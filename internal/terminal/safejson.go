package terminal

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// SafeJSON makes JSON safe for terminals. It escapes C1 and bidirectional control characters in
// strings as \uXXXX. Invalid UTF-8 becomes U+FFFD, like in JSON
// decoders.
func SafeJSON(text []byte) []byte {
	safe := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			safe = append(safe, `\ufffd`...)
		case isControl(r):
			safe = fmt.Appendf(safe, `\u%04x`, r)
		default:
			safe = append(safe, text[:n]...)
		}
		text = text[n:]
	}
	return safe
}

// isControl reports whether a terminal may interpret a character that JSON encoders do not
// escape.
func isControl(r rune) bool { return r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) }
