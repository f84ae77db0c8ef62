package grimoires

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// style writes texts of more than one line as blocks where YAML gives them back
// unchanged, and other texts with white space at odd places in quotes.
func style(n *yaml.Node) error {
	for _, inner := range n.Content {
		if err := style(inner); err != nil {
			return err
		}
	}
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	if n.Tag == "!!binary" { // how yaml.v3 encodes what is not UTF-8
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return fmt.Errorf("decode a text: %w", err)
		}
		n.Tag, n.Value = "!!str", strings.ToValidUTF8(string(data), "\ufffd")
	}
	if n.Tag != "!!str" {
		return nil
	}
	switch {
	case isBlock(n.Value):
		n.Style = yaml.LiteralStyle
	case n.Style != 0, strings.TrimSpace(n.Value) != n.Value, !isPlain(n.Value):
		n.Style = yaml.DoubleQuotedStyle
	}
	return nil
}

// isBlock reports whether a text survives as a literal block.
func isBlock(text string) bool {
	lines := strings.Split(text, "\n")
	if len(lines) == 1 || lines[0] == "" || lines[0][0] == ' ' {
		return false
	}
	for _, line := range lines {
		if !isPlain(line) {
			return false
		}
	}
	return true
}

// isPlain reports whether every character of a line can be seen.
func isPlain(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
