package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// A call is refused before a person is asked if a tool could read other arguments than coven shows: a name twice, or
// in another case.
func TestAmbiguousArguments(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Write", `{"file_path":"a","content":"good","content":"bad"}`, `"content" occurs twice`},
		{"Write", `{"file_path":"a","content":"good","Content":"bad"}`, `"content" and "Content" differ only by case`},
		{"Write", `{"file_path":"a","CONTENT":"bad"}`, `unknown argument "CONTENT": the name is "content"`},
		{"Bash", `{"command":"rm a","command":"rm b"}`, `"command" occurs twice`},
		{"Bash", `{"command":"rm a","Command":"rm b"}`, `differ only by case`},
		{"Bash", `{"command":"rm a","Run_In_Background":true}`, `the name is "run_in_background"`},
		{"Edit", `{"file_path":"a","file_path":"b","old_string":"x","new_string":"y"}`, `"file_path" occurs twice`},
		{"Edit", `{"file_path":"a","File_Path":"b","old_string":"x","new_string":"y"}`, `differ only by case`},
		{"NotebookEdit", `{"notebook_path":"a","cell":{"source":"x","source":"y"}}`, `"source" occurs twice`},
		{"mcp__coven__ls", `{"Path":"/etc"}`, `the name is "path"`},
		{"subtask", `{"task":"x","Agent":"other"}`, `the name is "agent"`},
		{"search", `{"query":"x","filters":[{"a":1,"A":2}]}`, `"a" and "A" differ only by case`},
		{"lint", `{"file":"a","file":"b"}`, `"file" occurs twice`},
	} {
		f, someone := &fake{}, &person{answers: []gate.Answer{{Allow: true}}}
		all := []permission.Rule{{Permission: permission.AgentSpawn, Pattern: "*", Action: permission.Allow}, {Permission: permission.MCPCall, Pattern: "*", Action: permission.Ask}}
		for _, name := range []permission.Name{permission.FileWrite, permission.BashExecute} {
			all = append(all, permission.Rule{Permission: name, Pattern: "*", Action: permission.Ask})
		}
		o := f.options(permission.OfPrimary(t.TempDir(), "a", all, nil, nil))
		o.Asker = someone
		o.Server = func(name string) string { return map[string]string{"search": "web/search"}[name] }
		o.Command = func(call gate.Call) (string, error) {
			return map[string]string{"lint": "lint a"}[call.Tool], nil
		}
		g := gate.New(o)
		v := g.Decide(t.Context(), gate.Call{ID: "1", Tool: c.tool, Input: json.RawMessage(c.input)})
		if v.Allow || !strings.HasPrefix(v.Message, "coven refused "+c.tool+": wrong arguments: ") || !strings.Contains(v.Message, c.want) || len(someone.asked) > 0 || f.snapshots > 0 {
			t.Errorf("%s %s: %+v, asked %+v", c.tool, c.input, v, someone.asked)
		}
	}
}

// A person's modification of a call must not be ambiguous either.
func TestAmbiguousModification(t *testing.T) {
	_, policy := careful(t)
	f := &fake{}
	someone := &person{answers: []gate.Answer{{Allow: true, Input: json.RawMessage(`{"command":"rm b","command":"rm c"}`)}, {}}}
	o := f.options(policy)
	o.Asker = someone
	v := gate.New(o).Decide(t.Context(), gate.Call{ID: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"rm a"}`)})
	if v.Allow || len(someone.asked) != 2 || !strings.Contains(someone.asked[1].Reason, `"command" occurs twice`) {
		t.Errorf("%+v, %+v", v, someone.asked)
	}
}

// A preview shows the arguments that the tool uses, and no others.
func TestResult(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Write", `{"file_path":"a","content":"new","old_string":"x","new_string":"z"}`, "new"},
		{"Edit", `{"file_path":"a","content":"harmless","old_string":"x","new_string":"z"}`, "zyx"},
		{"Edit", `{"file_path":"a","old_string":"x","new_string":"z","replace_all":true,"oldText":"y","newText":"1"}`, "zyz"},
		{"edit", `{"path":"a","oldText":"y","newText":"1","old_string":"x","new_string":"z"}`, "x1x"},
		{"mcp__coven__write", `{"path":"a","content":"new"}`, "new"},
		{"NotebookEdit", `{"notebook_path":"a","content":"harmless"}`, "unknown"},
		{"Bash", `{"command":"true","content":"harmless"}`, "unknown"},
		{"Write", `{"file_path":"a","Content":"x"}`, "unknown"},
		{"Write", `{"file_path":"a"}`, "unknown"},
		{"Edit", `{"file_path":"a","old_string":"x"}`, "unknown"},
		{"Edit", `{"file_path":"a","old_string":"missing","new_string":""}`, "unknown"},
	} {
		got, ok := gate.Result(gate.Call{Tool: c.tool, Input: json.RawMessage(c.input)}, "xyx")
		if !ok {
			got = "unknown"
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.input, got, c.want)
		}
	}
}
