package gate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// Subjects of calls of coven's own tools.
func TestOwnTools(t *testing.T) {
	root := t.TempDir()
	rule := func(name permission.Name, pattern string, action permission.Action) permission.Rule {
		return permission.Rule{Permission: name, Pattern: pattern, Action: action}
	}
	f := &fake{}
	g := gate.New(f.options(permission.OfPrimary(root, "a", []permission.Rule{
		rule(permission.NetFetch, "*.example.com", permission.Allow), rule(permission.NetFetch, "bad.example.com", permission.Deny),
		rule(permission.CodeSearch, "/secret/**", permission.Deny), rule(permission.AgentSpawn, "build", permission.Deny), rule(permission.AgentSpawn, "other", permission.Allow),
	}, nil, nil)))
	for _, c := range []struct{ tool, input, want, subject string }{
		{"ls", `{}`, "", "."},
		{"ls", `{"path":""}`, "", "."},
		{"ls", `{"path":"../x"}`, "outside the worktree", "../x"},
		{"ls", `{"path":5}`, "its input has no path", ""},
		{"glob", `{"pattern":"*"}`, "", "*"},
		{"glob", `{"pattern":"*","path":"secret/a"}`, "deny code.search /secret/**", "*"},
		{"grep", `{"pattern":"x","path":"/etc"}`, "/etc is outside the worktree", "x"},
		{"grep", `{"path":"a"}`, "its input has no pattern", ""},
		{"fetch", `{"url":"https://A.Example.com:8443/x"}`, "", "https://A.Example.com:8443/x"},
		{"fetch", `{"url":"https://BAD.example.com./x"}`, "deny net.fetch bad.example.com", "https://BAD.example.com./x"},
		{"fetch", `{"url":"https://a.example.com@evil.example/x"}`, "must not have a user name", ""},
		{"fetch", `{"url":"https://evil.example/#.example.com"}`, "no rule grants NetworkAccess", ""},
		{"fetch", `{"url":"ftp://a.example.com"}`, "only http and https", ""},
		{"todo", `{}`, "", ""},
		{"subtask", `{"task":"x"}`, "deny agent.spawn build", "build"},
		{"subtask", `{"task":"x","agent":"other"}`, "", "other"},
	} {
		v := g.Decide(t.Context(), gate.Call{ID: "1", Tool: c.tool, Input: json.RawMessage(c.input)})
		if v.Allow != (c.want == "") || !strings.Contains(v.Message, c.want) {
			t.Errorf("%s %s: %+v, want %q", c.tool, c.input, v, c.want)
		}
		if got := f.decisions[len(f.decisions)-1].Subject; c.subject != "" && got != c.subject {
			t.Errorf("%s %s is about %q", c.tool, c.input, got)
		}
	}
	if f.snapshots != 0 {
		t.Errorf("%d snapshots", f.snapshots)
	}
}

// C-143: A command tool is decided as its command, and each allowed call runs once.
func TestCommands(t *testing.T) {
	f := &fake{}
	o := f.options(permission.OfPrimary(t.TempDir(), "a", nil, nil, []permission.Rule{
		{Permission: permission.BashExecute, Pattern: "lint *", Action: permission.Allow}, {Permission: permission.BashExecute, Pattern: "lint secret", Action: permission.Deny},
	}))
	o.Command = func(call gate.Call) (string, error) {
		var in struct{ File string }
		switch err := json.Unmarshal(call.Input, &in); {
		case gate.ToolName(call) != "lint":
			return "", nil
		case err != nil || in.File == "":
			return "", errors.New("there is no file")
		}
		return "lint " + in.File, nil
	}
	g := gate.New(o)
	call := func(name, input string) gate.Call {
		return gate.Call{ID: "1", Tool: name, Input: json.RawMessage(input)}
	}
	for _, c := range []struct {
		call gate.Call
		want string
	}{
		{call("mcp__coven__lint", `{"file":"a","n":1}`), ""},
		{call("lint", `{"file":"secret"}`), "deny bash.execute lint secret"},
		{call("lint", `{}`), "there is no file"},
		{call("other", `{"file":"a"}`), "no permission is granted for this tool"},
	} {
		if v := g.Decide(t.Context(), c.call); v.Allow != (c.want == "") || !strings.Contains(v.Message, c.want) {
			t.Errorf("%s %s: %+v", c.call.Tool, c.call.Input, v)
		}
	}
	if f.snapshots != 1 || f.decisions[0].Subject != "lint a" || f.decisions[0].Permission != string(permission.BashExecute) {
		t.Errorf("%d snapshots, %+v", f.snapshots, f.decisions[0])
	}
	for _, c := range []struct {
		input string
		want  bool
	}{{`{"file":"b","n":1}`, false}, {`{"file":"secret"}`, false}, {`{"n": 1, "file": "a"}`, true}, {`{"file":"a","n":1}`, false}} {
		if got := g.Redeem(call("lint", c.input), ""); got != c.want {
			t.Errorf("%s is redeemed: %v", c.input, got)
		}
	}
}
