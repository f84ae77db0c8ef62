// Package yamldoc reads strict YAML files: unknown keys, duplicate keys and values of
// the wrong kind are errors with file, line, column and a suggestion.
//
// Parse reads a file, Decode fills a struct by its yaml tags, Fail adds errors of the
// caller, and Err returns all errors in the order of the file. A field of type At has
// the position of its value. A field of type Node is decoded by the caller.
//
// A value is text, bool, int, time.Duration (20m), a list, a map of texts to
// values, or a struct. A struct with a field of the tag text:"true" may be written as the
// text of this field alone, and a list with a method Single as its only item. Text may be written without quotes even if it looks like
// a number. Anchors and aliases work; merge keys, other tags and empty values
// are errors.
package yamldoc

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Document is one YAML file.
type Document struct {
	file    string
	lines   []string
	root    *yaml.Node // nil if the file is empty
	errs    Errors
	visits  int
	aliases []*yaml.Node // being decoded
	hints   map[string]string
}

// Node is a value that is not decoded yet. The zero Node is an absent value.
type Node struct{ node *yaml.Node }

// Parse parses a file with one document or with comments only. file is its name in
// errors. The error is an Errors.
func Parse(file string, data []byte) (*Document, error) {
	d := &Document{file: file, lines: strings.Split(string(data), "\n")}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, Errors{d.syntax(err)}
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, Errors{{file, second.Line, max(second.Column, 1), "a second document begins here", "a file holds one document"}}
	case !errors.Is(err, io.EOF):
		return nil, Errors{d.syntax(err)}
	}
	if len(first.Content) == 1 && (first.Content[0].Tag != "!!null" || first.Content[0].Value != "") {
		d.root = first.Content[0]
	}
	return d, nil
}

var yamlLine = lazyregexp.New(`^(?:line (\d+): )?((?s).*)$`)

// syntax converts an error of yaml.v3, which contains at most the line.
func (d *Document) syntax(err error) Error {
	m := yamlLine.FindStringSubmatch(strings.TrimPrefix(err.Error(), "yaml: "))
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil { // an error without a line: invalid UTF-8
		line = 1 + max(0, slices.IndexFunc(d.lines, func(l string) bool { return !utf8.ValidString(l) }))
	}
	e := Error{File: d.file, Line: line, Column: 1, Msg: "this is not YAML: " + m[2]}
	for _, at := range []int{line, line + 1} {
		if at <= len(d.lines) && strings.Contains(indentation(d.lines[at-1]), "\t") {
			e.Line, e.Hint = at, "indent with spaces: this line has a tab"
			break
		}
	}
	return e
}

func indentation(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// Root returns the document's value. It is not set if the file is empty.
func (d *Document) Root() Node { return Node{d.root} }

// Decode fills the struct that into points to. Fields whose keys are not in the file keep
// their values.
func (d *Document) Decode(into any) {
	if d.root != nil {
		d.DecodeNode(Node{d.root}, into)
	}
}

// Explain sets hints for unknown keys.
func (d *Document) Explain(hints map[string]string) { d.hints = hints }

// Fail records an error about the value at a place.
func (d *Document) Fail(at Place, msg, hint string) { d.FailAt(at, 0, 0, msg, hint) }

// FailAt records an error at a line and column of the text at a place. Both count from 1;
// 0 means unknown.
func (d *Document) FailAt(at Place, line, column int, msg, hint string) {
	l, c := d.inside(at.place(), line, column)
	d.errs = append(d.errs, Error{d.file, l, c, msg, hint})
}

// Where returns the line and column of a place, from 1.
func (d *Document) Where(at Place) (line, column int) { return d.inside(at.place(), 0, 0) }

// Err returns an Errors with all errors, or nil.
func (d *Document) Err() error {
	if len(d.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(d.errs, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Clone(d.errs)
}
