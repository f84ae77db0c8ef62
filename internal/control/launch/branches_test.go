package launch

import (
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/mcp/client"
)

// In a tree, the tool of a server has one owner, also if the definition of another agent names no tools, which is otherwise all.
func TestServerToolsInTree(t *testing.T) {
	t.Parallel()
	c := &Launcher{Plan: &grimoires.Plan{Tree: &grimoires.Tree{Root: "root", Branches: []grimoires.Branch{
		{Agent: "reader", MCP: []string{"docs"}}, {Agent: "operator", Prefixes: []string{"exec"}}, {Agent: "idler"},
	}}}}
	for _, test := range []struct{ server, tool, owner string }{
		{"docs", "look", "reader"}, {"docs", "exec_look", "reader"}, {"other", "exec_look", "operator"}, {"other", "look", ""},
	} {
		one := client.Tool{Server: test.server, Original: test.tool}
		one.Name = test.server + "_" + test.tool
		for _, name := range []string{"root", "reader", "operator", "idler"} {
			if got := c.hasOfServer(name, grimoires.AgentDefinition{}, one); got != (name == test.owner) {
				t.Errorf("%s has %s: %t", name, one.Name, got)
			}
		}
		if !c.hasOfServer("build", grimoires.AgentDefinition{}, one) {
			t.Errorf("build, which is not in the tree, lacks %s", one.Name)
		}
	}
}
