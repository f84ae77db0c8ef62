package tmpl

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is a template's text, and the text that text/template can parse: the
// hyphens of names, and the digits that names begin with, are written with
// letters that the text does not use; key= becomes the field .key, marked as
// one.
type source struct {
	name, text string
	encoded    string
	hyphen     rune // stands for "-"
	digit      rune // stands before a digit that begins a name
	key        rune // after a ".": the field is the key of key=
	equals     rune // before a " ": both stand for "="
}

// firstLetter is where the search for letters begins that the text does not
// use: in a script that nobody writes. leadByte is the byte with which all that
// are found begin in UTF-8.
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

// encode writes the encoded text. Outside of actions and inside of strings and
// comments nothing changes.
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
	comment = regexp.MustCompile(`(?s)^(?:-\s)?/\*.*?\*/`)
	quoted  = regexp.MustCompile("^(?:\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`[^`]*`)")
	keyword = regexp.MustCompile(`^[\pL_][\pL_\p{Nd}-]*=`)
	bare    = regexp.MustCompile(`^[\pL_][\pL_\p{Nd}]*`)
	chain   = regexp.MustCompile(`^(?:\$[\pL_\p{Nd}]*|\.[\pL_][\pL_\p{Nd}-]*|\))(?:\.[\pL_\p{Nd}][\pL_\p{Nd}-]*)*`)
)

// action writes an action up to its end and returns its length.
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

// decode gives a name, or a message with names, back as it was written.
func (s *source) decode(encoded string) string {
	if strings.IndexByte(encoded, leadByte) < 0 {
		return encoded
	}
	return strings.NewReplacer(
		"."+string(s.key), "", string(s.key), "", string(s.equals)+" ", "=", string(s.equals), "=",
		string(s.hyphen), "-", string(s.digit), "",
	).Replace(encoded)
}

// keyOf returns the key that a field stands for.
func (s *source) keyOf(field string) (key string, ok bool) {
	key, ok = strings.CutPrefix(field, string(s.key))
	return strings.TrimSuffix(s.decode(key), "="), ok
}

// place turns an offset into the encoded text into line and column.
func (s *source) place(offset int) (line, column int) {
	before := s.decode(s.encoded[:min(max(offset, 0), len(s.encoded))])
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// offset is where a line (from 1) and byte column (from 0) of the encoded text
// are.
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
