package yamldoc

import (
	"fmt"
	"strings"
)

// Error is an error in a file.
type Error struct {
	File         string
	Line, Column int // from 1
	Msg          string
	Hint         string // suggested fix, or empty
}

// Error returns "file:line:column: msg (hint)".
func (e Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Errors lists all errors in a file, in the order of the file.
type Errors []Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}
