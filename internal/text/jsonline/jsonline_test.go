package jsonline

import (
	"encoding/json"
	"slices"
	"testing"
)

// odd is a line in the style of another program.
const odd = `{ "zeta" : [1, {"a":"}"}] ,"id":"t-1", "title":"\u00e9 <b> & \"q\"","x":1.50 }`

// valueOf returns the value of the last member with a name.
func valueOf(line []byte, found []Member, name string) (value string) {
	for _, m := range found {
		if m.Name == name {
			value = string(line[m.Value:m.End])
		}
	}
	return value
}

// Setting and removing a member changes no byte of the others.
func FuzzPatch(f *testing.F) {
	for _, line := range []string{odd, `{}`, `{"a":1,"a":2}`, `{"a":{"b":[1,"\\\""]}, "c":null}`, ` { "a" : -1.5e+3 } `, `{"\u0061":1}`, `[1]`, `{"a":1`} {
		f.Add(line, "a", "v")
		f.Add(line, "new", "<&>")
	}
	f.Fuzz(func(t *testing.T, line, name, text string) {
		was, err := Members([]byte(line))
		if err != nil {
			return
		}
		value, err := Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		var clean string // an invalid UTF-8 name is written as valid UTF-8
		encoded, err := Encode(name)
		if err != nil || json.Unmarshal(encoded, &clean) != nil {
			t.Fatal(err)
		}
		added, err := Patch([]byte(line), []Edit{{clean, value}})
		if err != nil {
			t.Fatal(err)
		}
		after, err := Members(added)
		if err != nil || valueOf(added, after, clean) != string(value) {
			t.Fatalf("%q: %q, %v", line, added, err)
		}
		removed, err := Patch(added, []Edit{{Name: clean}})
		if err != nil {
			t.Fatal(err)
		}
		left, err := Members(removed)
		if err != nil {
			t.Fatalf("%q: %v", removed, err)
		}
		others := slices.DeleteFunc(was, func(m Member) bool { return m.Name == clean })
		if len(left) != len(others) {
			t.Fatalf("%q became %q", line, removed)
		}
		for i, m := range others {
			if line[m.Start:m.End] != string(removed[left[i].Start:left[i].End]) {
				t.Fatalf("%q became %q", line, removed)
			}
		}
	})
}
