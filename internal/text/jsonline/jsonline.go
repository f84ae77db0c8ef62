// Package jsonline edits a JSON object in one line of text, and keeps all other bytes of it: the order of
// its members, spaces, escapes, and members with the same name.
package jsonline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Member is a member of a line's object, with offsets into the line: the name
// starts at Start, and the value is [Value, End).
type Member struct {
	Name              string
	Start, Value, End int
}

// Edit sets a member to a JSON value, or removes it if the value is nil.
type Edit struct {
	Name  string
	Value []byte
}

// Set returns the edit that sets a member to a value.
func Set(name string, value any) (Edit, error) {
	raw, err := Encode(value)
	return Edit{name, raw}, err
}

// Encode encodes a value in one line. It does not use HTML escapes.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// SyntaxError is an error at an offset in a line.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string { return e.Reason }

// Members returns the members of a line's object, in order.
func Members(line []byte) ([]Member, error) {
	if !json.Valid(line) {
		return nil, describe(line)
	}
	c := cursor{line: line}
	c.space()
	if c.line[c.at] != '{' {
		return nil, &SyntaxError{c.at, "a line must be a JSON object"}
	}
	c.at++
	found := make([]Member, 0, 16)
	for c.space(); c.line[c.at] != '}'; c.space() {
		if c.line[c.at] == ',' {
			c.at++
			continue
		}
		m, err := c.member()
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// describe explains why a line is not JSON.
func describe(line []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(line, &whole)
	syntax := (*json.SyntaxError)(nil)
	if errors.As(err, &syntax) {
		return &SyntaxError{max(int(syntax.Offset)-1, 0), "not JSON: " + syntax.Error()}
	}
	return &SyntaxError{0, "not JSON"}
}

// cursor scans a line of valid JSON.
type cursor struct {
	line []byte
	at   int
}

func (c *cursor) space() {
	for c.at < len(c.line) && strings.IndexByte(" \t\r\n", c.line[c.at]) >= 0 {
		c.at++
	}
}

func (c *cursor) member() (Member, error) {
	m := Member{Start: c.at}
	c.text()
	name, err := Unquote(c.line[m.Start:c.at])
	if err != nil {
		return m, &SyntaxError{m.Start, "not JSON: " + err.Error()}
	}
	m.Name = name
	c.space()
	c.at++ // the colon
	c.space()
	m.Value = c.at
	c.skip()
	m.End = c.at
	return m, nil
}

// Unquote decodes a JSON string. It has a fast path for strings without escapes, which are
// the most frequent ones.
func Unquote(raw []byte) (string, error) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// text skips a string.
func (c *cursor) text() {
	for c.at++; c.line[c.at] != '"'; c.at++ {
		if c.line[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}

// skip skips a value.
func (c *cursor) skip() {
	for depth := 0; ; {
		switch c.line[c.at] {
		case '"':
			c.text()
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			c.at++
		default:
			c.word()
		}
		if depth == 0 {
			return
		}
	}
}

// word skips a number or one of true, false and null.
func (c *cursor) word() {
	for c.at < len(c.line) && strings.IndexByte(",:]} \t\r\n", c.line[c.at]) < 0 {
		c.at++
	}
}

// Patch applies edits to a line, and keeps all other bytes. If several members have the same
// name, it edits the last one, which is the one in effect.
func Patch(line []byte, edits []Edit) ([]byte, error) {
	for _, e := range edits {
		found, err := Members(line)
		if err != nil {
			return nil, err
		}
		if e.Value == nil {
			line = without(line, found, e.Name)
		} else {
			line = with(line, found, e)
		}
	}
	return line, nil
}

func with(line []byte, found []Member, e Edit) []byte {
	for i := len(found) - 1; i >= 0; i-- {
		if m := found[i]; m.Name == e.Name {
			return splice(line, m.Value, m.End, e.Value)
		}
	}
	name, _ := Encode(e.Name) // encoding a string cannot fail
	added := append(append(name, ':'), e.Value...)
	if len(found) == 0 {
		at := bytes.IndexByte(line, '{') + 1
		return splice(line, at, at, added)
	}
	end := found[len(found)-1].End
	return splice(line, end, end, append([]byte{','}, added...))
}

// without removes all members with a name, including one comma each.
func without(line []byte, found []Member, name string) []byte {
	for i := len(found) - 1; i >= 0; i-- {
		if found[i].Name != name {
			continue
		}
		from, to := found[i].Start, found[i].End
		switch {
		case i > 0:
			from = found[i-1].End
		case len(found) > 1:
			to = found[1].Start
		}
		line = splice(line, from, to, nil)
		found = append(found[:i:i], shifted(found[i+1:], from-to)...)
	}
	return line
}

func shifted(found []Member, by int) []Member {
	moved := make([]Member, len(found))
	for i, m := range found {
		moved[i] = Member{m.Name, m.Start + by, m.Value + by, m.End + by}
	}
	return moved
}

func splice(line []byte, from, to int, put []byte) []byte {
	out := make([]byte, 0, len(line)-(to-from)+len(put))
	out = append(out, line[:from]...)
	out = append(out, put...)
	return append(out, line[to:]...)
}
