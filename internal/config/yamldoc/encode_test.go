package yamldoc

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// amount is omitted from a file when it limits nothing.
type amount struct {
	USD   float64 `yaml:"usd,omitempty"`
	Share float64 `yaml:"share"`
}

func (a amount) IsZero() bool { return a.USD == 0 }

// version has its own encoding.
type version int

func (v version) EncodeYAML() *yaml.Node { return encodeText(strings.Repeat("v", int(v))) }

type part struct {
	Name string `yaml:"name"`
	Size int    `yaml:"size,omitempty"`
}

type whole struct {
	part    `yaml:",inline"`
	Text    string            `yaml:"text,omitempty"`
	Limit   time.Duration     `yaml:"limit,omitempty"`
	On      bool              `yaml:"on"`
	Expect  bool              `yaml:"expect,omitempty" oneof:"nothing|changes" true:"changes"`
	Amount  amount            `yaml:"amount,omitempty"`
	List    []string          `yaml:"list"`
	Map     map[string]string `yaml:"map,omitempty"`
	Parts   []part            `yaml:"parts,omitempty"`
	Pointer *part             `yaml:"pointer,omitempty"`
	Version version           `yaml:"version,omitempty"`
	Hidden  string            `yaml:"-"`
}

func TestMarshal(t *testing.T) {
	for want, w := range map[string]whole{
		"name: \"\"\non: false\nlist: []\n": {Hidden: "x", Amount: amount{Share: 0.1}},
		`name: 'no: "1"'
size: 3
text: |
  a
  b
limit: 1h30m
on: true
expect: changes
amount:
  usd: 0.5
  share: 0
list:
  - "true"
  - " x"
map:
  A: "1"
  b: ""
parts:
  - name: p
pointer:
  name: q
  size: 1
version: vv
`: {
			part: part{"no: \"1\"", 3}, Text: "a\nb\n", Limit: 90 * time.Minute, On: true, Expect: true,
			Amount: amount{USD: 0.5}, List: []string{"true", " x"}, Map: map[string]string{"b": "", "A": "1"},
			Parts: []part{{Name: "p"}}, Pointer: &part{"q", 1}, Version: 2,
		},
	} {
		got, err := Marshal(w)
		if err != nil || string(got) != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
		}
	}
}

// TestEmptyIsNotGiven checks that an empty map and an empty list are decoded as omitted if Marshal omits them.
func TestEmptyIsNotGiven(t *testing.T) {
	doc, err := Parse("f.yaml", []byte("map: {}\nlist: []\nkept: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Map  map[string]string `yaml:"map,omitempty"`
		List []string          `yaml:"list,omitempty"`
		Kept []string          `yaml:"kept"`
	}
	doc.Decode(&got)
	if err := doc.Err(); err != nil || got.Map != nil || got.List != nil || got.Kept == nil {
		t.Errorf("%#v, %v", got, err)
	}
}

// TestMarshalIsDecode encodes and decodes arbitrary texts, numbers and maps.
func TestMarshalIsDecode(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "~", "null", "<<", "a: b", "- a", " a\n", "\ta", "a\r\n", "0x1f", "1e3", "é\u0085", "*a", "&a b", "!x"}))
	rapid.Check(t, func(rt *rapid.T) {
		type file struct {
			Text  string            `yaml:"text"`
			Limit time.Duration     `yaml:"limit,omitempty"`
			N     int               `yaml:"n"`
			F     float64           `yaml:"f"`
			B     bool              `yaml:"b"`
			Word  bool              `yaml:"word,omitempty" oneof:"off|on" true:"on"`
			Map   map[string]string `yaml:"map,omitempty"`
			List  []string          `yaml:"list,omitempty"`
		}
		want := file{
			Text: text.Draw(rt, "text"), Limit: time.Duration(rapid.Int64Min(0).Draw(rt, "limit")), N: rapid.Int().Draw(rt, "n"),
			F: rapid.Float64().Draw(rt, "f"), B: rapid.Bool().Draw(rt, "b"), Word: rapid.Bool().Draw(rt, "word"),
		}
		if rapid.Bool().Draw(rt, "more") {
			want.Map, want.List = map[string]string{text.Draw(rt, "key"): text.Draw(rt, "value")}, []string{text.Draw(rt, "item")}
		}
		data, err := Marshal(want)
		if err != nil {
			rt.Fatal(err)
		}
		doc, err := Parse("f.yaml", data)
		if err != nil {
			rt.Fatalf("%v\n%s", err, data)
		}
		var got file
		doc.Decode(&got)
		if err := doc.Err(); err != nil || !reflect.DeepEqual(got, want) {
			rt.Fatalf("%v: got %+v, want %+v, from\n%s", err, got, want, data)
		}
	})
}

func TestMapping(t *testing.T) {
	n := Mapping(part{Name: "first", Size: 1}, struct {
		Name  string `yaml:"name"`
		Other string `yaml:"other"`
	}{"second", "x"})
	data, err := yaml.Marshal(n)
	if want := "name: first\nsize: 1\nother: x\n"; err != nil || string(data) != want {
		t.Errorf("%v, got\n%s", err, data)
	}
}

func TestDecodeSeveral(t *testing.T) {
	d, err := Parse("f.yaml", []byte("name: a\nsize: 2\nlater: [1]\nnope: x\nexpect: nothing\nkind: c"))
	if err != nil {
		t.Fatal(err)
	}
	var first part
	var second struct {
		Name   string `yaml:"name"`
		Later  []part `yaml:"later" later:"true"`
		Expect bool   `yaml:"expect" oneof:"nothing|changes" true:"changes"`
		Kind   string `yaml:"kind" oneof:"a|b"`
	}
	d.DecodeNode(d.Root(), &first, &second)
	if first != (part{Size: 2}) || second.Name != "a" || second.Later != nil || second.Expect {
		t.Errorf("got %+v, %+v", first, second)
	}
	want := "f.yaml:4:1: unknown key \"nope\" (known: name, size, later, expect, kind)\nf.yaml:6:7: \"c\" is not one of a, b"
	if err := d.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if !d.Key(d.Root(), "later").Set() || d.Key(d.Root(), "absent").Set() || d.Key(d.Key(d.Root(), "later"), "x").Set() {
		t.Error("Key finds the wrong values")
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{"": 0, "15m": 15 * time.Minute, "2h": 2 * time.Hour, "1h0m1s": time.Hour + time.Second, "90ms": 90 * time.Millisecond} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
