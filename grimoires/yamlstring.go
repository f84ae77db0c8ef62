package grimoires

import (
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// yamlString is a text that survives YAML unchanged, whatever it contains: yaml.v3
// encodes some texts so that they cannot be decoded.
type yamlString string

// MarshalYAML implements yaml.Marshaler: it encodes multi-line texts as blocks where
// that is safe, and quotes what could be misread.
func (s yamlString) MarshalYAML() (any, error) {
	text := strings.ToValidUTF8(string(s), "\ufffd")
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case isBlock(text):
		n.Style = yaml.LiteralStyle
	case strings.TrimSpace(text) != text || !isPlain(text):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, nil
}

// isBlock reports whether a text survives as a literal block.
func isBlock(text string) bool {
	lines := strings.Split(text, "\n")
	if len(lines) == 1 || lines[0] == "" || lines[0][0] == ' ' || lines[0][0] == '\t' {
		return false
	}
	for _, line := range lines {
		if !isPlain(strings.ReplaceAll(line, "\t", "")) {
			return false
		}
	}
	return true
}

// isPlain reports whether every character of a line is printable.
func isPlain(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
