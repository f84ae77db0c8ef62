package yamldoc

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	On    bool `yaml:"on"`
	Other text `yaml:"other"`
}

type text = At[string]

type example struct {
	Name  text              `yaml:"name"`
	Count int               `yaml:"count"`
	Limit time.Duration     `yaml:"limit"`
	List  []string          `yaml:"list"`
	Map   map[string]string `yaml:"map,omitempty"`
	Inner inner             `yaml:"inner"`
	Same  struct {
		Extra string `yaml:"extra"`
	} `yaml:",inline"`
	Later   Node    `yaml:"later"`
	Pointer *string `yaml:"pointer"`
	Hidden  string
}

func decode(t *testing.T, file string) (*Document, example, error) {
	t.Helper()
	d, err := Parse("f.yaml", []byte(file))
	if err != nil {
		return nil, example{}, err
	}
	var e example
	d.Decode(&e)
	return d, e, d.Err()
}

func TestDecode(t *testing.T) {
	d, e, err := decode(t, `
# a comment
name: &n 007
count: 3
limit: 1h30m
list: [a, 1.50, true]
map: {A: 1, B: *n}
inner: {on: false, other: "x"}
extra: yes
later: {any: [thing]}
pointer: p
`)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name.Value != "007" || !e.Name.Set() || e.Count != 3 || e.Limit != 90*time.Minute || e.Same.Extra != "yes" || *e.Pointer != "p" {
		t.Errorf("got %+v", e)
	}
	if !reflect.DeepEqual(e.List, []string{"a", "1.50", "true"}) || !reflect.DeepEqual(e.Map, map[string]string{"A": "1", "B": "007"}) {
		t.Errorf("got %v, %v", e.List, e.Map)
	}
	if e.Inner.On || e.Inner.Other.Or("y") != "x" || (At[int]{}).Or(4) != 4 || !e.Later.Set() || !d.Root().Set() {
		t.Errorf("got %+v", e.Inner)
	}
}

func TestEmptyFile(t *testing.T) {
	for _, file := range []string{"", "# only\n# comments\n", "---\n", "\n\n"} {
		d, _, err := decode(t, file)
		if err != nil || d.Root().Set() {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for file, want := range map[string]string{
		"nam: x":                            `f.yaml:1:1: unknown key "nam" (did you mean "name"?)`,
		"inner: {zzz: 1}":                   `f.yaml:1:9: unknown key "zzz" (known: on, other)`,
		"Hidden: x":                         `f.yaml:1:1: unknown key "Hidden" (known: name, count, limit, list, map, inner, extra, later, pointer)`,
		"name: a\nname: b":                  `f.yaml:2:1: the key "name" is given twice (first on line 1)`,
		"map:\n  a: 1\n  a: 2":              `f.yaml:3:3: the key "a" is given twice (first on line 2)`,
		"name: [a]":                         `f.yaml:1:7: this must be text, not a list`,
		"name: {{.x}}":                      `f.yaml:1:7: this must be text, not keys with values (text that begins with { needs quotes)`,
		"name:":                             `f.yaml:1:6: the value is missing`,
		"name: ~":                           `f.yaml:1:7: the value is missing`,
		"list:\n  -":                        `f.yaml:2:4: the value is missing`,
		"name: !!binary aGk=":               `f.yaml:1:7: this must be text, not a value with the tag !!binary`,
		"name: !x y":                        `f.yaml:1:7: this must be text, not a value with the tag !x`,
		"count: many":                       `f.yaml:1:8: this must be a whole number, not "many"`,
		"count: 1.5":                        `f.yaml:1:8: this must be a whole number, not "1.5"`,
		"count: [1]":                        `f.yaml:1:8: this must be a whole number, not a list`,
		"inner: {on: maybe}":                `f.yaml:1:13: this must be true or false, not "maybe"`,
		"inner: {on: 1}":                    `f.yaml:1:13: this must be true or false, not "1"`,
		"inner: text":                       `f.yaml:1:8: this must be keys with values, not "text"`,
		"list: a":                           `f.yaml:1:7: this must be a list, not "a"`,
		"limit: 20":                         `f.yaml:1:8: "20" is not a duration (a unit is missing: 20s or 20m?)`,
		"limit: soon":                       `f.yaml:1:8: "soon" is not a duration (write 90s, 20m or 1h30m)`,
		"limit: -3s":                        `f.yaml:1:8: a duration must be more than 0`,
		"limit: [1]":                        `f.yaml:1:8: this must be a duration such as 20m, not a list`,
		"[a]: b":                            `f.yaml:1:1: a key must be text`,
		"a: &a {on: true}\ninner: {<<: *a}": "f.yaml:1:1: unknown key \"a\" (known: name, count, limit, list, map, inner, extra, later, pointer)\nf.yaml:2:9: merge keys (<<) do not work here (anchors and aliases do)",
		"- a":                               `f.yaml:1:1: this must be keys with values, not a list`,
		"name: a\n---\nname: b":             `f.yaml:2:1: a second document begins here (a file holds one document)`,
		"name: 'a\ncount: 1":                `f.yaml:2:1: this is not YAML: found unexpected end of stream`,
		"inner:\n\ton: true":                `f.yaml:2:1: this is not YAML: found character that cannot start any token (indent with spaces: this line has a tab)`,
		"name: *nope":                       `f.yaml:1:1: this is not YAML: unknown anchor 'nope' referenced`,
		"name: a: b":                        `f.yaml:1:1: this is not YAML: mapping values are not allowed in this context`,
		"name: a\n---\nname: 'b":            `f.yaml:3:1: this is not YAML: found unexpected end of stream`,
		"list: [é, {a: b}, [c]]":            "f.yaml:1:11: this must be text, not keys with values (text that begins with { needs quotes)\nf.yaml:1:19: this must be text, not a list",
	} {
		_, _, err := decode(t, file)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", file, err, want)
		}
		if all := Errors(nil); err != nil && !errors.As(err, &all) {
			t.Errorf("%q: the error is a %T", file, err)
		}
	}
}

func TestAliasesAreBounded(t *testing.T) {
	type tree struct {
		Kids []tree `yaml:"kids"`
	}
	bomb := "kids:\n- &a0 {kids: []}\n"
	for i := range 9 {
		bomb += fmt.Sprintf("- &a%d {kids: [%s]}\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for file, want := range map[string]string{
		"kids: [&a {kids: [*a]}]": "f.yaml:1:19: the alias *a contains itself",
		bomb:                      "the file is too large",
	} {
		d, err := Parse("f.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		d.Decode(&tree{})
		if err := d.Err(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPlacesInTexts(t *testing.T) {
	for file, want := range map[string]string{
		"name: abc":                            "f.yaml:1:8: here",
		"name: 'abc'":                          "f.yaml:1:9: here",
		"name: |\n  ab\n  cd":                  "f.yaml:2:4: here",
		"inner:\n  other: |-\n\n\n      abc\n": "f.yaml:5:8: here",
		"name: >\n  ab\n  cd":                  "f.yaml:1:7: here",
		"name: |2\n    ab":                     "f.yaml:2:4: here",
		"name: |\r\n  ab\r\n":                  "f.yaml:2:4: here",
	} {
		d, e, err := decode(t, file)
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		at, line := e.Name, 1
		if e.Inner.Other.Set() {
			at, line = e.Inner.Other, 3
		}
		d.FailAt(at, line, 2, "here", "")
		if err := d.Err(); err.Error() != want {
			t.Errorf("%q: got %v, want %s", file, err, want)
		}
	}
	d, e, err := decode(t, "extra: x")
	if err != nil {
		t.Fatal(err)
	}
	d.Fail(e.Name, "absent", "hint")
	if got := d.Err().Error(); got != "f.yaml:1:1: absent (hint)" {
		t.Errorf("got %s", got)
	}
}

func TestTextAndOneOf(t *testing.T) {
	d, err := Parse("f.yaml", []byte("a: &m {type: agnet}\nb: *m\n"))
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		A Node `yaml:"a"`
		B Node `yaml:"b"`
	}
	d.Decode(&e)
	if d.Text(e.A, "type").Value != "agnet" || d.Text(e.B, "type").Value != "agnet" || d.Text(e.A, "no").Set() || d.Text(Node{}, "x").Set() {
		t.Error("the type is not found")
	}
	if !d.OneOf(text{}, "x") || d.OneOf(d.Text(e.A, "type"), "agent", "script") {
		t.Error("OneOf is wrong")
	}
	if got := d.Err().Error(); got != `f.yaml:1:14: "agnet" is not one of agent, script (did you mean "agent"?)` {
		t.Errorf("got %s", got)
	}
}

// Decoding never panics or hangs, and every error has a position.
func FuzzDecode(f *testing.F) {
	for _, file := range []string{"name: x", "a: &a [*a]", "{[a]: b}", "? a\n: b", "- - -", "%YAML 1.1\n---\na: b", "list: [&a [*a]]", "name: |\n  é\n", "<<: {}", "map: {? {a: b} : c}"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		_, _, err := decode(t, file)
		var all Errors
		if err != nil && !errors.As(err, &all) {
			t.Fatalf("%T", err)
		}
		for _, e := range all {
			if e.Line < 1 || e.Column < 1 || e.Msg == "" {
				t.Fatalf("%q: %+v", file, e)
			}
		}
	})
}
