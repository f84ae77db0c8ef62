package yamldoc

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/text/didyoumean"
)

// maxVisits limits the number of decoded nodes, because aliases can make a small file
// large.
const maxVisits = 100_000

// placed is implemented by types that decode themselves.
type placed interface {
	decode(d *Document, n *yaml.Node)
}

// structs is a list of structs that are decoded from one mapping.
type structs []any

// DecodeNode decodes a node into the values that into points to. Several structs are decoded from
// the same mapping, each with its own keys. A key that several structs have goes to the last.
func (d *Document) DecodeNode(n Node, into ...any) {
	switch {
	case n.node == nil:
	case len(into) == 1:
		d.value(n.node, reflect.ValueOf(into[0]).Elem())
	default:
		together := structs(into)
		d.value(n.node, reflect.ValueOf(&together).Elem())
	}
}

// Key returns the value of a mapping's key. It is not set if the key is missing.
func (d *Document) Key(at Place, key string) Node {
	var found Node
	d.eachKey(at, func(name string, value Node) bool {
		if name == key {
			found = value
		}
		return name != key
	})
	return found
}

func (d *Document) value(n *yaml.Node, v reflect.Value) {
	if p, ok := v.Addr().Interface().(placed); ok {
		p.decode(d, n)
		return
	}
	if n.Kind == yaml.AliasNode {
		d.alias(n, v)
		return
	}
	if d.visits++; d.visits > maxVisits {
		if d.visits == maxVisits+1 {
			d.Fail(Node{n}, "the file is too large", "")
		}
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.Fail(Node{n}, "the value is missing", "")
		return
	}
	d.kind(n, v)
}

// textField returns the field of a struct that may be written alone, as a text instead of a mapping. Its tag is
// text:"true". The result is not valid if the struct has none.
func textField(v reflect.Value) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("text") == "true" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func (d *Document) alias(n *yaml.Node, v reflect.Value) {
	if slices.Contains(d.aliases, n.Alias) {
		d.Fail(Node{n}, "the alias *"+n.Value+" contains itself", "")
		return
	}
	d.aliases = append(d.aliases, n.Alias)
	d.value(n.Alias, v)
	d.aliases = d.aliases[:len(d.aliases)-1]
}

func (d *Document) kind(n *yaml.Node, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d.duration(n, v)
	case v.Type() == reflect.TypeFor[structs]():
		var all []reflect.Value
		for _, s := range v.Interface().(structs) {
			all = append(all, reflect.ValueOf(s).Elem())
		}
		d.fields(n, all...)
	case v.Kind() == reflect.Struct && n.Kind == yaml.ScalarNode && textField(v).IsValid():
		d.value(n, textField(v))
	case v.Kind() == reflect.Struct:
		d.fields(n, v)
	case v.Kind() == reflect.Slice:
		d.list(n, v)
	case v.Kind() == reflect.Map:
		d.dictionary(n, v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem())
	default:
		d.scalar(n, v)
	}
}

func (d *Document) scalar(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, wanted(v.Kind()))
		return
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		if !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!merge"}, n.Tag) {
			d.wrong(n, "text")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		var b bool
		err = n.Decode(&b)
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		var i int64
		if i, err = strconv.ParseInt(n.Value, 10, v.Type().Bits()); err == nil { // otherwise the field keeps its valid value
			v.SetInt(i)
		}
	case reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(n.Value, 64)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			err = strconv.ErrRange
		}
		v.SetFloat(f)
	default:
		panic("yamldoc: no YAML for a field of type " + v.Type().String())
	}
	if err != nil {
		d.wrong(n, wanted(v.Kind()))
	}
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text"
}

func (d *Document) duration(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, "a duration such as 20m")
		return
	}
	value, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		hint := "write 90s, 20m or 1h30m"
		if _, err := strconv.Atoi(n.Value); err == nil {
			hint = "a unit is missing: " + n.Value + "s or " + n.Value + "m?"
		}
		d.Fail(Node{n}, fmt.Sprintf("%q is not a duration", n.Value), hint)
	case value <= 0:
		d.Fail(Node{n}, "a duration must be more than 0", "")
	default:
		v.SetInt(int64(value))
	}
}

// wrong records that a value has the wrong type.
func (d *Document) wrong(n *yaml.Node, want string) {
	got := strconv.Quote(n.Value)
	switch {
	case n.Kind == yaml.MappingNode:
		got = "keys with values"
	case n.Kind == yaml.SequenceNode:
		got = "a list"
	case n.Tag != "" && !strings.HasPrefix(n.Tag, "!!"), n.Tag == "!!binary":
		got = "a value with the tag " + n.Tag
	}
	hint := ""
	if want == "text" && n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 {
		hint = "text that begins with { needs quotes"
	}
	d.Fail(Node{n}, "this must be "+want+", not "+got, hint)
}

// single is implemented by lists that may be written as their only item.
type single interface{ Single() }

func (d *Document) list(n *yaml.Node, v reflect.Value) {
	if _, ok := v.Interface().(single); ok && n.Kind == yaml.ScalarNode {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		d.value(n, v.Index(0))
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, v.Index(i))
	}
}

func (d *Document) dictionary(n *yaml.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.each(n, func(key, value *yaml.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

// each calls do for every valid key of a mapping. It reports keys that are not text and duplicate keys.
func (d *Document) each(n *yaml.Node, do func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "keys with values")
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.Fail(Node{key}, "a key must be text", "")
		case key.Tag == "!!merge":
			d.Fail(Node{key}, "merge keys (<<) do not work here", "anchors and aliases do")
		case twice:
			d.Fail(Node{key}, fmt.Sprintf("the key %q is given twice", key.Value), fmt.Sprintf("first on line %d", first))
		default:
			lines[key.Value] = key.Line
			do(key, value)
		}
	}
}

func (d *Document) fields(n *yaml.Node, structs ...reflect.Value) {
	byKey := map[string]field{}
	var keys []string
	for _, v := range structs {
		keys = collect(v, byKey, keys)
	}
	d.each(n, func(key, value *yaml.Node) {
		f, ok := byKey[key.Value]
		if !ok {
			hint := cmp.Or(d.hints[key.Value], unknown(key.Value, keys))
			d.Fail(Node{key}, fmt.Sprintf("unknown key %q", key.Value), hint)
			return
		}
		d.field(value, f)
	})
}

// field is the struct field of a key, with its tags.
type field struct {
	value     reflect.Value
	omitEmpty bool     // an empty list or map is treated as omitted, as in Encode
	later     bool     // the caller decodes it
	oneOf     []string // the allowed words; empty if any word is allowed
	isTrue    string   // the word that means true in a bool field
}

func (d *Document) field(n *yaml.Node, f field) {
	if f.later {
		return
	}
	if f.isTrue != "" {
		word := At[string]{node: n}
		d.value(n, reflect.ValueOf(&word.Value).Elem())
		d.OneOf(word, f.oneOf...)
		f.value.SetBool(word.Value == f.isTrue)
		return
	}
	d.value(n, f.value)
	if k := f.value.Kind(); f.omitEmpty && (k == reflect.Map || k == reflect.Slice) && f.value.Len() == 0 {
		f.value.SetZero()
	}
	if f.oneOf == nil {
		return
	}
	text, ok := f.value.Interface().(At[string])
	if !ok {
		text = At[string]{f.value.String(), n}
	}
	d.OneOf(text, f.oneOf...)
}

// unknown returns the hint for an unknown word.
func unknown(word string, known []string) string {
	return cmp.Or(didyoumean.Hint(word, known), "known: "+strings.Join(known, ", "))
}

// collect collects the fields of a struct, including inlined structs.
func collect(v reflect.Value, byKey map[string]field, keys []string) []string {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		key, options, _ := strings.Cut(tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			keys = collect(v.Field(i), byKey, keys)
		case key != "" && key != "-":
			f := field{
				value: v.Field(i), omitEmpty: options == "omitempty",
				later: tag.Get("later") == "true", isTrue: tag.Get("true"),
			}
			if words := tag.Get("oneof"); words != "" {
				f.oneOf = strings.Split(words, "|")
			}
			if _, twice := byKey[key]; !twice {
				keys = append(keys, key)
			}
			byKey[key] = f
		}
	}
	return keys
}

// Keys returns the values of a mapping by key.
func (d *Document) Keys(at Place) map[string]Node {
	all := map[string]Node{}
	d.eachKey(at, func(key string, value Node) bool {
		if _, twice := all[key]; !twice {
			all[key] = value
		}
		return true
	})
	return all
}

// eachKey calls do for the keys of a mapping until it returns false.
func (d *Document) eachKey(at Place, do func(key string, value Node) bool) {
	node := at.place()
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil || node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content) && do(node.Content[i].Value, Node{node.Content[i+1]}); i += 2 {
	}
}

// Text returns the text of a mapping's key. It ignores the other
// keys.
func (d *Document) Text(n Node, key string) At[string] {
	var text At[string]
	d.DecodeNode(d.Key(n, key), &text)
	return text
}

// OneOf reports whether a text is allowed, and records an error if it is not. An
// absent text is allowed.
func (d *Document) OneOf(text At[string], allowed ...string) bool {
	if !text.Set() || slices.Contains(allowed, text.Value) {
		return true
	}
	d.Fail(text, fmt.Sprintf("%q is not one of %s", text.Value, strings.Join(allowed, ", ")), didyoumean.Hint(text.Value, allowed))
	return false
}

// Any decodes a node with yaml.v3, without positions, into the value that into points to.
func (d *Document) Any(n Node, into any) {
	if n.node == nil {
		return
	}
	if err := n.node.Decode(into); err != nil {
		d.Fail(n, strings.TrimPrefix(err.Error(), "yaml: "), "")
	}
}

// Items returns the items of a list. Any other node counts as a list with one item.
func (d *Document) Items(n Node) []Node {
	if n.node == nil || n.node.Kind != yaml.SequenceNode {
		return []Node{n}
	}
	items := make([]Node, len(n.node.Content))
	for i, item := range n.node.Content {
		items[i] = Node{item}
	}
	return items
}
