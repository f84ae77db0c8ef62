package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/detect"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// Setting is a key with its effective value.
type Setting struct {
	Key      string   `json:"key"` // run.max_tasks
	Value    Value    `json:"value"`
	Default  Value    `json:"default"`
	From     string   `json:"from"` // FILE:LINE, FromDetected or FromDefault
	About    string   `json:"about"`
	Allowed  []string `json:"allowed,omitempty"`   // allowed values; nil for any
	UserOnly bool     `json:"user_only,omitempty"` // not allowed in the project's file
}

// Origins of a setting that no file contains.
const (
	FromDefault  = "default"
	FromDetected = "detected" // checks that were detected in the repository
)

// Settings returns all settings and their origins, in the order of the
// documentation. The errors are those of Load.
func (s Sources) Settings() ([]Setting, error) {
	c, from, err := s.load()
	if err != nil {
		return nil, err
	}
	var all []Setting
	for _, k := range keys() {
		one := Setting{
			Key: k.name, Value: Value{k.of(c)}, Default: Value{k.of(Default())}, From: FromDefault,
			About: k.about, Allowed: k.words, UserOnly: k.usersOnly,
		}
		if place, ok := from[k.name]; ok {
			one.From = place
		}
		all = append(all, one)
	}
	if s.Root != "" && c.Checks == nil {
		detected(all, s.Root)
	}
	return all, nil
}

// detected sets the checks to those detected in a repository.
func detected(all []Setting, root string) {
	checks, _ := detect.Checks(root)
	for i := range all {
		if all[i].Key == "checks" && checks != nil {
			all[i].Value, all[i].From = Value{check.Of(checks...)}, FromDetected
		}
	}
}

// Find returns the setting of a key. The error for an unknown key suggests similar ones.
func Find(all []Setting, name string) (Setting, error) {
	for _, s := range all {
		if s.Key == name {
			return s, nil
		}
	}
	return Setting{}, unknownKey(name)
}

// unknownKey returns the error for an unknown key with a suggestion: the
// keys of a section, the only key with this ending (or the only one at the lowest depth), or else the most similar key.
func unknownKey(name string) error {
	var inside, ends []string
	for _, k := range Keys() {
		if strings.HasPrefix(k, name+".") {
			inside = append(inside, k)
		}
		if strings.HasSuffix(k, "."+name) || strings.HasSuffix(k, "_"+name) {
			ends = append(ends, k)
		}
	}
	depth := func(k string) int { return strings.Count(k, ".") }
	slices.SortStableFunc(ends, func(a, b string) int { return depth(a) - depth(b) })
	const next = "coven config list"
	switch {
	case len(inside) > 0:
		return exit.Usagef(next, "%s is a section, not a key (its keys: %s)", name, strings.Join(inside, ", "))
	case len(ends) == 1, len(ends) > 1 && depth(ends[0]) < depth(ends[1]):
		return exit.Usagef(next, "unknown key %q (did you mean %q?)", name, ends[0])
	}
	return exit.Usagef(next, "unknown key %q%s", name, didyoumean.Aside(name, Keys()))
}

// Value is the value of a setting.
type Value struct{ value any }

// MarshalJSON implements json.Marshaler. Durations are strings, as in the file.
func (v Value) MarshalJSON() ([]byte, error) {
	var plain any
	if err := yamldoc.Encode(v.value).Decode(&plain); err != nil {
		return nil, fmt.Errorf("encode a setting: %w", err)
	}
	return json.Marshal(plain)
}

// String formats the value as one line of YAML, such as sonnet, 10m or [go vet ./...]. It returns none
// for an empty value.
func (v Value) String() string {
	node := yamldoc.Encode(v.value)
	if node.Kind != yaml.ScalarNode && len(node.Content) == 0 || v.value == "" {
		return "none"
	}
	inOneLine(node)
	return text(node)
}

// Plain formats the value for scripts: a string without quotes, a list of strings with one per line, and
// anything else as YAML. It returns "" for an empty value.
func (v Value) Plain() string {
	switch value := v.value.(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, "\n")
	case Network:
		return strings.Join(value, "\n")
	case []check.Check:
		return strings.Join(check.Commands(value), "\n")
	}
	if node := yamldoc.Encode(v.value); node.Kind == yaml.ScalarNode || len(node.Content) > 0 {
		return text(node)
	}
	return ""
}

// inOneLine sets the flow style for a node and its descendants.
func inOneLine(n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.Style = yaml.DoubleQuotedStyle
		}
	default:
		n.Style = yaml.FlowStyle
	}
	for _, item := range n.Content {
		inOneLine(item)
	}
}

// text encodes a node without a trailing newline.
func text(n *yaml.Node) string {
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(n), encoder.Close()); err != nil {
		panic(err) // nodes of this package can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
