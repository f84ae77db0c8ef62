package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/coven-run/coven/internal/tool"
)

func TestCheck(t *testing.T) {
	read := tool.Tool{Kind: tool.Kind{Name: "read"}, Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},"lines":{"type":"array","items":{"type":"integer","minimum":1}}},"required":["path"],"additionalProperties":false}`)}
	for arguments, want := range map[string]string{
		`{"path":"a"}`:                   "",
		`{"path":"a","lines":[1,2]}`:     "",
		`{"path":5}`:                     `wrong arguments: path: type: 5 has type "integer", want "string"`,
		`{"path":"a","lines":[1,0,"x"]}`: `wrong arguments: lines/1: minimum: 0/1 is less than 1.000000; lines/2: type: x has type "string", want "integer"`,
		`{}`:                             `wrong arguments: required: missing properties: ["path"]`,
		`{"path":"a","file":"b"}`:        `wrong arguments: unexpected additional properties ["file"]`,
		`[]`:                             `wrong arguments: type: [] has type "array", want "object"`,
		`{"path":`:                       "the arguments are not JSON",
		`{"path":5,"file":"b"}`:          `wrong arguments: path: type: 5 has type "integer", want "string"; unexpected additional properties ["file"]`,
		`{"path":"a"} {}`:                "the arguments are not JSON",
		``:                               "the arguments are not JSON",
	} {
		err := read.Check(json.RawMessage(arguments))
		if got := ""; err != nil || want != "" {
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", arguments, got, want)
			}
		}
	}
	for _, schema := range []string{`{`, `{"type":5}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"https://example.com/x"}`} {
		if err := (tool.Tool{Kind: tool.Kind{Name: "odd"}, Schema: json.RawMessage(schema)}).Check(json.RawMessage(`{}`)); err == nil {
			t.Errorf("%s: no error", schema)
		}
	}
}
