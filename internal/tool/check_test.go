package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/coven-run/coven/internal/tool"
)

func TestCheck(t *testing.T) {
	read := tool.Tool{Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},"lines":{"type":"array","items":{"type":"integer","minimum":1}}},"required":["path"],"additionalProperties":false}`)}
	for arguments, want := range map[string]string{
		`{"path":"a"}`:                   "",
		`{"path":"a","lines":[1,2]}`:     "",
		`{"path":5}`:                     "wrong arguments: path: got number, want string",
		`{"path":"a","lines":[1,0,"x"]}`: "wrong arguments: lines/1: minimum: got 0, want 1; lines/2: got string, want integer",
		`{}`:                             "wrong arguments: missing property 'path'",
		`{"path":"a","file":"b"}`:        "wrong arguments: additional properties 'file' not allowed",
		`[]`:                             "wrong arguments: got array, want object",
		`{"path":`:                       "the arguments are not JSON",
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
		if err := (tool.Tool{Name: "odd", Schema: json.RawMessage(schema)}).Check(json.RawMessage(`{}`)); err == nil {
			t.Errorf("%s: no error", schema)
		}
	}
}
