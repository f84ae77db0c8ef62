package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// errByHand reports a file whose layout edit does not support.
var errByHand = errors.New("its layout cannot be edited")

// byteOrderMark is written by some editors at the beginning of a file.
const byteOrderMark = "\ufeff"

// edit returns a settings file with a key set to a value. It changes only the lines of the
// key, and keeps comments, the order of keys and the line endings. path is the key with
// its sections.
func edit(file string, path []string, value *yaml.Node) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(file), &doc); err != nil {
		return "", errByHand
	}
	text, marked := strings.CutPrefix(file, byteOrderMark)
	e := editor{lines: strings.SplitAfter(text, "\n"), end: "\n"}
	if strings.HasSuffix(e.lines[0], "\r\n") {
		e.end = "\r\n"
	}
	if n := len(e.lines); e.lines[n-1] == "" {
		e.lines = e.lines[:n-1]
	}
	if len(doc.Content) == 0 || isEmpty(doc.Content[0]) {
		e.insert(len(e.lines), 0, path, value)
	} else if err := e.set(doc.Content[0], len(e.lines), path, value); err != nil {
		return "", err
	}
	text = strings.Join(e.lines, "")
	if marked {
		text = byteOrderMark + text
	}
	return text, nil
}

// isEmpty reports whether a document has no value, but only a --- line.
func isEmpty(n *yaml.Node) bool { return n.Tag == "!!null" && n.Value == "" }

// editor edits the lines of a file. Each line includes its line ending, which may be missing in the last line.
type editor struct {
	lines []string
	end   string // line ending for new lines
}

// set sets a key in a mapping that ends before the line with index end.
func (e *editor) set(m *yaml.Node, end int, path []string, value *yaml.Node) error {
	if m.Kind != yaml.MappingNode || m.Style&yaml.FlowStyle != 0 || len(m.Content) == 0 {
		return errByHand
	}
	indent := m.Content[0].Column - 1
	for i := 0; i < len(m.Content); i += 2 {
		key, old := m.Content[i], m.Content[i+1]
		if key.Value != path[0] {
			continue
		}
		last := end
		if i+2 < len(m.Content) {
			last = m.Content[i+2].Line - 1
		}
		last = e.trim(key.Line, last, indent)
		switch block := old.Kind == yaml.MappingNode && old.Style&yaml.FlowStyle == 0; {
		case len(path) == 1:
			e.replace(key.Line-1, last, entry(indent, path[0], value, old.LineComment))
		case block:
			return e.set(old, last, path[1:], value)
		case old.Kind == yaml.MappingNode:
			e.replace(key.Line-1, last, entry(indent, path[0], with(old, path[1], value), old.LineComment))
		default:
			return errByHand
		}
		return nil
	}
	e.insert(e.trim(0, end, indent), indent, path, value)
	return nil
}

// trim returns the end of an entry that begins at the line first (starting at 1) and ends before the line end. Of the
// comments after its last value, those belong to it that are indented further, up to the first that is not. Blank lines
// and other comments belong to the next entry.
func (e *editor) trim(first, end, indent int) int {
	last := first
	for i := end; i > first; i-- {
		if bare, _ := e.line(i); bare != "" && bare[0] != '#' {
			last = i
			break
		}
	}
	for i := last + 1; i <= end; i++ {
		bare, column := e.line(i)
		if bare != "" && column <= indent {
			break
		}
		if bare != "" {
			last = i
		}
	}
	return last
}

// line returns the text of the line with the number i, starting at 1, and the width of the indentation before it.
func (e *editor) line(i int) (bare string, indent int) {
	line := strings.TrimRight(e.lines[i-1], "\r\n")
	bare = strings.TrimLeft(line, " \t")
	return bare, len(line) - len(bare)
}

// insert inserts a new entry before the line with index at.
func (e *editor) insert(at, indent int, path []string, value *yaml.Node) {
	for _, section := range slices.Backward(path[1:]) {
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word(section), value}}
	}
	if at > 0 && !strings.HasSuffix(e.lines[at-1], "\n") {
		e.lines[at-1] += e.end
	}
	e.replace(at, at, entry(indent, path[0], value, ""))
}

func (e *editor) replace(from, to int, lines []string) {
	for i := range lines {
		lines[i] += e.end
	}
	e.lines = slices.Replace(e.lines, from, to, lines...)
}

// entry returns the lines of a key with its value and trailing comment, without line
// endings.
func entry(indent int, key string, value *yaml.Node, comment string) []string {
	all := strings.Split(text(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word(key), value}}), "\n")
	if comment != "" {
		all[0] += " " + comment
	}
	for i, line := range all {
		all[i] = strings.Repeat(" ", indent) + line
	}
	return all
}

// with returns a copy of a mapping with a key set.
func with(m *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	changed := &yaml.Node{Kind: yaml.MappingNode, Style: m.Style, Content: slices.Clone(m.Content)}
	for i := 0; i < len(changed.Content); i += 2 {
		if changed.Content[i].Value == key {
			changed.Content[i+1] = value
			return changed
		}
	}
	changed.Content = append(changed.Content, word(key), value)
	return changed
}

func word(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// onlyDiffer reports whether two files differ only in the value of a key.
func onlyDiffer(before, after string, path []string) bool {
	var a, b map[string]any
	if yaml.Unmarshal([]byte(before), &a) != nil || yaml.Unmarshal([]byte(after), &b) != nil {
		return false
	}
	drop(a, path)
	drop(b, path)
	return reflect.DeepEqual(a, b) || len(a) == 0 && len(b) == 0
}

// drop removes a key, and its sections if they become empty.
func drop(m map[string]any, path []string) {
	section, ok := m[path[0]].(map[string]any)
	if len(path) > 1 && ok {
		drop(section, path[1:])
	}
	if len(path) == 1 || ok && len(section) == 0 {
		delete(m, path[0])
	}
}
