package yamldoc

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Place is a position in a file: a Node or an At.
type Place interface{ place() *yaml.Node }

func (n Node) place() *yaml.Node { return n.node }

// Set reports whether the file contains the value.
func (n Node) Set() bool { return n.node != nil }

// TextAt returns a text that was decoded from a node, with its position.
func TextAt(n Node, text string) At[string] { return At[string]{text, n.node} }

// IsMap reports whether the node is a map.
func (n Node) IsMap() bool {
	node := n.node
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node != nil && node.Kind == yaml.MappingNode
}

// At is a value with its position in the file.
type At[T any] struct {
	Value T
	node  *yaml.Node
}

func (a At[T]) place() *yaml.Node { return a.node }

// Set reports whether the file contains the value.
func (a At[T]) Set() bool { return a.node != nil }

// Or returns the value, or otherwise if the file does not contain it.
func (a At[T]) Or(otherwise T) T {
	if a.node == nil {
		return otherwise
	}
	return a.Value
}

func (a *At[T]) decode(d *Document, n *yaml.Node) {
	a.node = n
	d.value(n, reflect.ValueOf(&a.Value).Elem())
}

func (n *Node) decode(_ *Document, node *yaml.Node) { n.node = node }

// inside converts a line and column in a text to those of the file. If they cannot be
// determined (escapes, folded lines), it returns the start of the text.
func (d *Document) inside(n *yaml.Node, line, column int) (int, int) {
	switch {
	case n == nil:
		return 1, 1
	case line == 0 || n.Kind != yaml.ScalarNode:
		return n.Line, max(n.Column, 1)
	case n.Style&yaml.LiteralStyle != 0:
		at := n.Line + line
		if at > len(d.lines) {
			return n.Line, n.Column
		}
		return at, d.blockIndent(n) + max(column, 1)
	case line > 1 || n.Style&yaml.FoldedStyle != 0:
		return n.Line, n.Column
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return n.Line, n.Column + max(column, 1)
	}
	return n.Line, n.Column + max(column, 1) - 1
}

// blockIndent returns the indentation of a literal block, which is the indentation of its first
// non-empty line.
func (d *Document) blockIndent(n *yaml.Node) int {
	text := n.Value
	for i := n.Line; i < len(d.lines); i++ {
		first, _, _ := cut(text)
		if first != "" {
			return max(0, utf8.RuneCountInString(trimCR(d.lines[i]))-utf8.RuneCountInString(first))
		}
		_, text, _ = cut(text)
	}
	return 0
}

func cut(text string) (line, rest string, found bool) { return strings.Cut(text, "\n") }

func trimCR(line string) string { return strings.TrimSuffix(line, "\r") }
