package tmpl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// source is a template's text with its encoding for the parser of text/template:
// letters that do not occur in the text replace the hyphens in names and mark the digits
// at the beginning of names; key= becomes the field .key, also marked.
type source struct {
	name, text string
	encoded    string
	hyphen     rune // replaces "-"
	digit      rune // precedes a digit at the beginning of a name
	key        rune // after a ".": the field is the key of key=
	equals     rune // followed by " ": replaces "="
}

// firstLetter starts the search for unused letters, in a script that is no longer in use.
// leadByte is the first UTF-8 byte of all these letters.
const (
	firstLetter = 0x10400
	leadByte    = 0xf0
)

func newSource(name, text string) source {
	s := source{name: name, text: text}
	r := rune(firstLetter)
	for _, letter := range []*rune{&s.hyphen, &s.digit, &s.key, &s.equals} {
		for strings.ContainsRune(text, r) {
			r++
		}
		*letter = r
		r++
	}
	s.encode()
	return s
}

// encode sets the encoded text. It encodes only actions, without their
// strings and comments.
func (s *source) encode() {
	var b strings.Builder
	rest := s.text
	for {
		before, after, found := strings.Cut(rest, "{{")
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteString("{{")
		rest = after[s.action(&b, after):]
	}
	s.encoded = b.String()
}

var (
	comment = lazyregexp.New(`(?s)^(?:-\s)?/\*.*?\*/`)
	quoted  = lazyregexp.New("^(?:\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`[^`]*`)")
	keyword = lazyregexp.New(`^[\pL_][\pL_\p{Nd}-]*=`)
	bare    = lazyregexp.New(`^[\pL_][\pL_\p{Nd}]*`)
	chain   = lazyregexp.New(`^(?:\$[\pL_\p{Nd}]*|\.[\pL_][\pL_\p{Nd}-]*|\))(?:\.[\pL_\p{Nd}][\pL_\p{Nd}-]*)*`)
)

// action encodes an action and returns its length.
func (s *source) action(b *strings.Builder, text string) int {
	at := len(comment.FindString(text))
	b.WriteString(text[:at])
	for at < len(text) && !strings.HasPrefix(text[at:], "}}") {
		if word := quoted.FindString(text[at:]); word != "" {
			b.WriteString(word)
			at += len(word)
			continue
		}
		if word := chain.FindString(text[at:]); word != "" {
			word = strings.TrimRight(word, "-")
			s.chain(b, word)
			at += len(word)
			continue
		}
		if word := keyword.FindString(text[at:]); word != "" {
			b.WriteString("." + string(s.key))
			s.chain(b, strings.TrimSuffix(word, "="))
			b.WriteString(string(s.equals) + " ")
			at += len(word)
			continue
		}
		if word := bare.FindString(text[at:]); word != "" {
			b.WriteString(word)
			at += len(word)
			continue
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		b.WriteString(text[at : at+size])
		at += size
	}
	return at
}

func (s *source) chain(b *strings.Builder, word string) {
	last := rune(0)
	for _, r := range word {
		switch {
		case r == '-':
			b.WriteRune(s.hyphen)
		case last == '.' && unicode.IsDigit(r):
			b.WriteRune(s.digit)
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		last = r
	}
}

// decode restores the original text of a name or a message.
func (s *source) decode(encoded string) string {
	if strings.IndexByte(encoded, leadByte) < 0 {
		return encoded
	}
	return strings.NewReplacer(
		"."+string(s.key), "", string(s.key), "", string(s.equals)+" ", "=", string(s.equals), "=",
		string(s.hyphen), "-", string(s.digit), "",
	).Replace(encoded)
}

// keyOf returns the key that is encoded in a field.
func (s *source) keyOf(field string) (key string, ok bool) {
	key, ok = strings.CutPrefix(field, string(s.key))
	return strings.TrimSuffix(s.decode(key), "="), ok
}

// place converts an offset in the encoded text to a line and column of the original.
func (s *source) place(offset int) (line, column int) {
	before := s.decode(s.encoded[:min(max(offset, 0), len(s.encoded))])
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// offset converts a line (starting at 1) and byte column (starting at 0) of the encoded
// text to an offset.
func (s *source) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		next := strings.IndexByte(s.encoded[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return at + column
}
