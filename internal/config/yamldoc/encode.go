package yamldoc

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"
)

// Encoder is implemented by types with their own encoding.
type Encoder interface {
	EncodeYAML() *yaml.Node
}

// Marshal encodes a struct as a file, indented by two spaces. It is the reverse of
// Decode: the tags of the fields name the keys. A key with omitempty is omitted if
// the value is zero or if its method IsZero returns true. Invalid UTF-8 is replaced.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(encode(reflect.ValueOf(v))); err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	return b.Bytes(), nil
}

// Encode returns a value as Marshal encodes it.
func Encode(v any) *yaml.Node { return encode(reflect.ValueOf(v)) }

// Mapping encodes several structs as one mapping, in the order of their
// fields. If several structs have a key, the first one wins.
func Mapping(structs ...any) *yaml.Node {
	n, seen := &yaml.Node{Kind: yaml.MappingNode}, map[string]bool{}
	for _, s := range structs {
		pairs := encodeFields(reflect.Indirect(reflect.ValueOf(s)))
		for i := 0; i < len(pairs); i += 2 {
			if key := pairs[i].Value; !seen[key] {
				seen[key] = true
				n.Content = append(n.Content, pairs[i], pairs[i+1])
			}
		}
	}
	return n
}

func encode(v reflect.Value) *yaml.Node {
	if e, ok := v.Interface().(Encoder); ok {
		return e.EncodeYAML()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		n := Mapping(v.Interface())
		if text := textField(v); text.IsValid() && len(n.Content) == 2 {
			return encode(text)
		}
		return n
	case reflect.Slice:
		return encodeList(v)
	case reflect.Map:
		return encodeMap(v)
	case reflect.String:
		return encodeText(v.String())
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return encodeText(FormatDuration(d))
	}
	return encodePlain(v)
}

// encodePlain encodes a number or a bool.
func encodePlain(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v.Kind() {
	case reflect.Bool:
		n.Value = strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		n.Value = strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		n.Value = strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		panic("yamldoc: no YAML for a field of type " + v.Type().String())
	}
	return n
}

func encodeFields(v reflect.Value) []*yaml.Node {
	var all []*yaml.Node
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		key, options, _ := strings.Cut(tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			all = append(all, encodeFields(field)...)
		case key == "" || key == "-" || options == "omitempty" && isZero(field):
		case tag.Get("true") != "":
			all = append(all, encodeText(key), encodeText(tag.Get("true")))
		default:
			all = append(all, encodeText(key), encode(field))
		}
	}
	return all
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func encodeList(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if v.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	for i := range v.Len() {
		n.Content = append(n.Content, encode(v.Index(i)))
	}
	return n
}

// encodeMap encodes a map with text keys, sorted.
func encodeMap(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if v.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		n.Content = append(n.Content, encodeText(key.String()), encode(v.MapIndex(key)))
	}
	return n
}

// encodeText encodes any text so that it is decoded unchanged, which
// yaml.v3 alone does not ensure. It uses a block for multi-line text where that is safe, and
// quotes for text that could be misread.
func encodeText(text string) *yaml.Node {
	text = strings.ToValidUTF8(text, "\ufffd")
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case isBlock(text):
		n.Style = yaml.LiteralStyle
	case strings.TrimSpace(text) != text || !isPrintable(text) || text == "<<": // a merge key
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// isBlock reports whether a text is decoded unchanged from a literal block.
func isBlock(text string) bool {
	lines := strings.Split(text, "\n")
	if len(lines) == 1 || lines[0] == "" || lines[0][0] == ' ' || lines[0][0] == '\t' {
		return false
	}
	for _, line := range lines {
		if !isPrintable(strings.ReplaceAll(line, "\t", "")) {
			return false
		}
	}
	return true
}

func isPrintable(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// FormatDuration formats 15m0s as 15m, and 0 as "".
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
