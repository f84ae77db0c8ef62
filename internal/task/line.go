package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// member is a member of a line's object, with offsets into the line: the name
// starts at start, and the value is [value, end).
type member struct {
	name              string
	start, value, end int
}

// edit sets a member to a JSON value, or removes it if the value is nil.
type edit struct {
	name  string
	value []byte
}

// set returns an edit. It does not use HTML escapes.
func set(name string, value any) (edit, error) {
	raw, err := encode(value)
	return edit{name, raw}, err
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// syntaxError is an error at an offset in a line.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

// members returns the members of a line's object, in order.
func members(line []byte) ([]member, error) {
	if !json.Valid(line) {
		return nil, describe(line)
	}
	c := cursor{line: line}
	c.space()
	if c.line[c.at] != '{' {
		return nil, &syntaxError{c.at, "a line must be a JSON object"}
	}
	c.at++
	var found []member
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
		return &syntaxError{max(int(syntax.Offset)-1, 0), "not JSON: " + syntax.Error()}
	}
	return &syntaxError{0, "not JSON"}
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

func (c *cursor) member() (member, error) {
	m := member{start: c.at}
	c.text()
	name, err := unquote(c.line[m.start:c.at])
	if err != nil {
		return m, &syntaxError{m.start, "not JSON: " + err.Error()}
	}
	m.name = name
	c.space()
	c.at++ // the colon
	c.space()
	m.value = c.at
	c.skip()
	m.end = c.at
	return m, nil
}

// unquote decodes a JSON string. It has a fast path for strings without escapes, which are
// the most frequent ones.
func unquote(raw []byte) (string, error) {
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

// patch applies edits to a line, and keeps all other bytes. If several members have the same
// name, it edits the last one, which is the one in effect.
func patch(line []byte, edits []edit) ([]byte, error) {
	for _, e := range edits {
		found, err := members(line)
		if err != nil {
			return nil, err
		}
		if e.value == nil {
			line = without(line, found, e.name)
		} else {
			line = with(line, found, e)
		}
	}
	return line, nil
}

func with(line []byte, found []member, e edit) []byte {
	for i := len(found) - 1; i >= 0; i-- {
		if m := found[i]; m.name == e.name {
			return splice(line, m.value, m.end, e.value)
		}
	}
	name, _ := encode(e.name) // encoding a string cannot fail
	added := append(append(name, ':'), e.value...)
	if len(found) == 0 {
		at := bytes.IndexByte(line, '{') + 1
		return splice(line, at, at, added)
	}
	end := found[len(found)-1].end
	return splice(line, end, end, append([]byte{','}, added...))
}

// without removes all members with a name, including one comma each.
func without(line []byte, found []member, name string) []byte {
	for i := len(found) - 1; i >= 0; i-- {
		if found[i].name != name {
			continue
		}
		from, to := found[i].start, found[i].end
		switch {
		case i > 0:
			from = found[i-1].end
		case len(found) > 1:
			to = found[1].start
		}
		line = splice(line, from, to, nil)
		found = append(found[:i:i], shifted(found[i+1:], from-to)...)
	}
	return line
}

func shifted(found []member, by int) []member {
	moved := make([]member, len(found))
	for i, m := range found {
		moved[i] = member{m.name, m.start + by, m.value + by, m.end + by}
	}
	return moved
}

func splice(line []byte, from, to int, put []byte) []byte {
	out := make([]byte, 0, len(line)-(to-from)+len(put))
	out = append(out, line[:from]...)
	out = append(out, put...)
	return append(out, line[to:]...)
}
