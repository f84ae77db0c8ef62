// Package strictjson decodes JSON objects that every reader understands alike. Readers disagree about a name that an
// object has twice, and about its case: some take the first value, others the last, and encoding/json ignores case. So a
// person could be shown one value while a program uses another.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

var errNoObject = errors.New("not a JSON object")

// Object decodes a JSON object. Numbers become json.Number. It returns an error if the object, or one in it, has a
// name twice, or two names that differ only by case.
func Object(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil || object == nil {
		return nil, errNoObject
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return object, check(text)
}

// scope is an open object or array of a text.
type scope struct {
	names   map[string]string // the names of an object, by their folded form; nil for an array
	isValue bool              // the next token is a value of the object
}

// check returns an error if an object in a valid text has ambiguous names.
func check(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var open []*scope
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errNoObject
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 {
			if err := open[len(open)-1].take(token); err != nil {
				return err
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &scope{names: map[string]string{}})
		case json.Delim('['):
			open = append(open, &scope{})
		}
	}
}

// take adds the next token of an object or array, a name or the beginning of a value.
func (s *scope) take(token json.Token) error {
	name, ok := token.(string)
	if s.names == nil || s.isValue || !ok {
		s.isValue = false
		return nil
	}
	s.isValue = true
	folded := Fold(name)
	switch before, taken := s.names[folded]; {
	case !taken:
		s.names[folded] = name
	case before == name:
		return fmt.Errorf("%.40q occurs twice", name)
	default:
		return fmt.Errorf("%.40q and %.40q differ only by case", before, name)
	}
	return nil
}

// Fold returns the same text for all names that differ only by case, as strings.EqualFold compares them.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}
