package gate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// A call of an MCP tool is decided as SERVER/TOOL, independent of the agent's name for the tool. It saves the worktree,
// and runs once for each time that the gate allowed it with the same arguments.
func TestServers(t *testing.T) {
	root := t.TempDir()
	f := &fake{}
	served := map[string]string{"search": "files/search", "delete": "files/delete", "web_search": "web/search"}
	o := f.options(permission.OfPrimary(root, "a", []permission.Rule{
		{Permission: permission.MCPCall, Pattern: "files/*", Action: permission.Allow}, {Permission: permission.MCPCall, Pattern: "files/delete", Action: permission.Deny},
	}, nil, nil))
	o.Server = func(name string) string { return served[name] }
	g := gate.New(o)
	for _, c := range []struct{ tool, want string }{
		{"search", ""},
		{"mcp__coven__search", ""},
		{"delete", "deny mcp.call files/delete"},
		{"web_search", "no rule"},
		{"other", "no permission is granted for this tool"},
	} {
		before := f.snapshots
		v := g.Decide(t.Context(), gate.Call{ID: "1", Tool: c.tool, Input: json.RawMessage(`{"a":1}`)})
		if v.Allow != (c.want == "") || !strings.Contains(v.Message, c.want) || v.Allow != (f.snapshots == before+1) {
			t.Errorf("%s: %+v, %d snapshots", c.tool, v, f.snapshots-before)
		}
	}
	call := func(tool, input string) bool {
		return g.Redeem(gate.Call{Tool: tool, Input: json.RawMessage(input)}, "files/"+tool)
	}
	if call("search", `{"a":2}`) || call("delete", `{"a":1}`) || call("web_search", `{"a":1}`) {
		t.Error("a call ran that the gate did not allow")
	}
	if !call("search", `{ "a": 1 }`) || !call("search", `{"a":1}`) || call("search", `{"a":1}`) {
		t.Error("a call that was allowed twice does not run twice")
	}
	// If a name is reassigned to another server's tool while a call waits, the call does not run that tool.
	g.Decide(t.Context(), gate.Call{ID: "2", Tool: "search", Input: json.RawMessage(`{"a":3}`)})
	served["search"] = "web/search"
	if g.Redeem(gate.Call{Tool: "search", Input: json.RawMessage(`{"a":3}`)}, "web/search") {
		t.Error("a call ran that the gate allowed for another server")
	}
	if !call("search", `{"a":3}`) {
		t.Error("the call that was allowed does not run")
	}
}

// A call of a tool that the agent lacks is refused, independent of its permissions.
func TestLacks(t *testing.T) {
	f := &fake{}
	o := f.options(permission.OfPrimary(t.TempDir(), "a", nil, nil, nil))
	o.Lacks = func(c gate.Call) error {
		if c.Tool == "bash" {
			return errors.New("it has no bash")
		}
		return nil
	}
	g := gate.New(o)
	for tool, want := range map[string]string{"bash": "coven refused bash: it has no bash", "ls": ""} {
		if v := g.Decide(t.Context(), gate.Call{ID: tool, Tool: tool, Input: json.RawMessage(`{"command":"true"}`)}); v.Message != want {
			t.Errorf("%s: %+v", tool, v)
		}
	}
	if f.snapshots != 0 {
		t.Error("the worktree was saved for a call that was refused")
	}
}
