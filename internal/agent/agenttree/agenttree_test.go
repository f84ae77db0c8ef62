package agenttree_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/tool"
)

func toolsOf(names ...string) (all []*tool.Tool) {
	for _, name := range names {
		all = append(all, &tool.Tool{Kind: tool.Kind{Name: name}})
	}
	return all
}

func namesOf(tools []*tool.Tool) (all []string) {
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return all
}

// The built-in definitions are valid and have all fields for the orchestrator.
func TestShipped(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range agenttree.Shipped() {
		parsed, problems := agent.Parse(d.Path, []byte(agenttree.Files()[d.Name+".md"]))
		if len(problems) > 0 || parsed.Prompt == "" {
			t.Errorf("%s: %v", d.Name, problems)
		}
		if d.Accepts == "" || d.Returns == "" || len(d.Cannot) == 0 || len(d.Keywords) == 0 || d.Description == "" {
			t.Errorf("%s lacks something: %+v", d.Name, d)
		}
		names = append(names, d.Name)
	}
	// L-02: The order of the registry.
	if want := []string{"operator", "navigator", "vault", "librarian", "planner", "chronicler"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// L-05 to L-12: All prefixes, and names at their boundaries.
func TestPartition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"exec_shell": "Operator", "exec": "Operator", "execute_sql": "Operator", "fs_read": "Operator", "skill_deploy": "Operator",
		"browser_navigate": "Navigator", "browser_screenshot": "Navigator",
		"crypto_sign": "Vault", "secrets_get": "Vault", "payment_send": "Vault",
		"search_web": "Librarian", "rag_query": "Librarian", "graph_traverse": "Librarian", "save_knowledge_item": "Librarian", "save_knowledge_data": "Librarian",
		"save_learning": "Librarian", "create_skill_x": "Librarian", "create_skill_new": "Librarian", "list_skills": "Librarian",
		"memory_store": "Chronicler", "observe_event": "Chronicler", "reflect_summary": "Chronicler",
		"custom_action": "Unmatched", "fs": "Unmatched", "FS_read": "Unmatched", "Exec": "Unmatched", "browser": "Unmatched", "create_": "Unmatched", "planner_x": "Unmatched", "": "Unmatched",
	} {
		set := reflect.ValueOf(agenttree.PartitionTools(toolsOf(name)))
		for i := range set.NumField() {
			if got, field := set.Field(i).Len(), set.Type().Field(i).Name; (got == 1) != (field == want) || got > 1 {
				t.Errorf("%q: %s has %d tools, it belongs to %s", name, field, got, want)
			}
		}
	}
}

// L-12: The librarian takes precedence over an operator of the repository that also claims create_.
func TestPriority(t *testing.T) {
	t.Parallel()
	own := agent.Definition{Name: "operator", Profile: agent.Profile{ToolPrefixes: []string{"exec", "fs_", "skill_", "create_"}}}
	branches := agenttree.Branches(agenttree.Specialists([]agent.Definition{own}, nil))
	for name, want := range map[string]string{"create_skill_new": "librarian", "save_knowledge_data": "librarian", "create_file": "operator"} {
		if got := agenttree.Owner(branches, "", name); got != want {
			t.Errorf("%s belongs to %q, want %q", name, got, want)
		}
	}
}

// L-26: The fields and their types.
func TestRoleToolSet(t *testing.T) {
	t.Parallel()
	set := reflect.TypeFor[agenttree.RoleToolSet]()
	var fields []string
	for i := range set.NumField() {
		f := set.Field(i)
		fields = append(fields, f.Name)
		if f.Type != reflect.TypeFor[[]*tool.Tool]() {
			t.Errorf("%s is %v", f.Name, f.Type)
		}
	}
	if want := []string{"Operator", "Navigator", "Vault", "Librarian", "Planner", "Chronicler", "Unmatched"}; !slices.Equal(fields, want) {
		t.Errorf("%v, want %v", fields, want)
	}
}

// aName generates names of tools, many of them with a known prefix.
func aName() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		prefix := rapid.SampledFrom([]string{
			"", "exec", "fs_", "skill_", "browser_", "crypto_", "secrets_", "payment_", "search_", "rag_", "graph_", "save_knowledge", "save_learning", "create_skill",
			"list_skills", "memory_", "observe_", "reflect_", "planner_", "unmatched_",
		}).Draw(t, "prefix")
		return prefix + rapid.StringMatching(`[a-z_]{0,6}`).Draw(t, "rest")
	})
}

// L-27 L-28: Every tool is in exactly one field, and the planner has none.
func TestPartitionIsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools := toolsOf(rapid.SliceOf(aName()).Draw(t, "tools")...)
		set := agenttree.PartitionTools(tools)
		if set.Planner != nil {
			t.Fatalf("the planner has %v", namesOf(set.Planner))
		}
		seen := map[*tool.Tool]int{}
		for _, field := range [][]*tool.Tool{set.Operator, set.Navigator, set.Vault, set.Librarian, set.Planner, set.Chronicler, set.Unmatched} {
			for _, one := range field {
				seen[one]++
			}
		}
		for _, one := range tools {
			if seen[one] != 1 {
				t.Fatalf("%s is in %d fields", one.Name, seen[one])
			}
		}
		if len(seen) != len(tools) {
			t.Fatalf("%d tools are of %d", len(seen), len(tools))
		}
	})
}

// L-03 L-11 L-17: Each tool with an owner is adapted once; the others are not.
func TestAdapted(t *testing.T) {
	t.Parallel()
	tools := toolsOf("exec_shell", "fs_read", "search_web", "foo", "bar", "create_skill_x")
	calls := map[string][]string{}
	tree := agenttree.Build(agenttree.Specialists(nil, nil), tools, func(owner string, one *tool.Tool) string {
		calls[one.Name] = append(calls[one.Name], owner)
		return one.Name
	})
	want := map[string][]string{"exec_shell": {"operator"}, "fs_read": {"operator"}, "search_web": {"librarian"}, "create_skill_x": {"librarian"}}
	if !reflect.DeepEqual(calls, want) {
		t.Errorf("adapted %v, want %v", calls, want)
	}
	if !slices.Equal(tree.Unmatched, []string{"foo", "bar"}) || len(tree.Tools) != 0 {
		t.Errorf("unmatched %v, of the root %v", tree.Unmatched, tree.Tools)
	}
}

// L-18: The capabilities of all prefixes.
func TestCapability(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"exec_shell": "command execution", "fs_read": "file operations", "skill_x": "skill management", "browser_x": "web browsing", "crypto_x": "cryptography",
		"secrets_x": "secret management", "payment_x": "blockchain payments (USDC on Base)", "search_x": "information search", "rag_x": "knowledge retrieval (RAG)",
		"graph_x": "knowledge graph traversal", "save_knowledge_x": "knowledge persistence", "save_learning": "learning persistence", "create_skill": "skill creation",
		"list_skills": "skill listing", "memory_x": "memory storage and recall", "observe_x": "event observation", "reflect_x": "reflection and summarization",
		"deploy_x": "general actions", "save_x": "general actions", "": "general actions",
	} {
		if got := agenttree.Capability(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func described(t *testing.T, tree agenttree.Tree, name string) string {
	t.Helper()
	for _, child := range tree.Children {
		if child.Name == name {
			return child.Description
		}
	}
	t.Fatalf("the tree has no %s: %v", name, tree.Names())
	return ""
}

// L-19 L-20 L-21: Descriptions list each capability once, in the order of the tools, without names of tools.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	tree := agenttree.Build(agenttree.Specialists(nil, nil), toolsOf("exec_shell", "fs_read", "exec_run", "crypto_sign", "secrets_get", "payment_send"), nil)
	operator := described(t, tree, "operator")
	if !strings.HasSuffix(operator, ". Capabilities: command execution, file operations") || strings.Contains(operator, "exec_") || strings.Contains(operator, "fs_") {
		t.Error(operator)
	}
	if vault := described(t, tree, "vault"); !strings.HasSuffix(vault, ". Capabilities: cryptography, secret management, blockchain payments (USDC on Base)") {
		t.Error(vault)
	}
	own := agent.Definition{Name: "shipper", Description: "Ships.", Profile: agent.Profile{ToolPrefixes: []string{"deploy_", "fs_x"}, Capabilities: []string{"deployment"}}}
	tree = agenttree.Build(agenttree.Specialists([]agent.Definition{own}, nil), toolsOf("deploy_x", "deploy_y"), nil)
	if got, want := described(t, tree, "shipper"), "Ships. Capabilities: deployment"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	own.Capabilities = nil
	tree = agenttree.Build(agenttree.Specialists([]agent.Definition{own}, nil), toolsOf("deploy_x", "deploy_y"), nil)
	if got, want := described(t, tree, "shipper"), "Ships. Capabilities: general actions"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// L-13 to L-16: Which specialists are in the tree.
func TestIncluded(t *testing.T) {
	t.Parallel()
	known := []agent.Definition{
		{Name: "code-reviewer"},
		{Name: "lead", Mode: agent.ModePrimary, Profile: agent.Profile{ToolPrefixes: []string{"deploy_"}}},
		{Name: "shipper", Profile: agent.Profile{ToolPrefixes: []string{"deploy_"}}},
		{Name: "always", Profile: agent.Profile{AlwaysInclude: true}},
		{Name: "pages", MCP: []string{"playwright"}},
		{Name: "absent", MCP: []string{"none"}},
	}
	for tools, want := range map[string]string{
		"exec_a,search_b": "[operator librarian planner always pages]",
		"":                "[planner always pages]",
		"foo,bar":         "[planner always pages]",
		"deploy_x":        "[planner shipper always pages]",
		"exec_a,browser_a,crypto_a,search_a,memory_a": "[operator navigator vault librarian planner chronicler always pages]",
	} {
		tree := agenttree.Build(agenttree.Specialists(known, []string{"playwright"}), toolsOf(strings.Split(tools, ",")...), nil)
		if got := fmt.Sprint(tree.Names()); got != want {
			t.Errorf("%s: %s, want %s", tools, got, want)
		}
	}
}

// A definition of the repository replaces a built-in one and inherits unset fields.
func TestReplaced(t *testing.T) {
	t.Parallel()
	own := agent.Definition{Name: "vault", Description: "Ours", Profile: agent.Profile{Keywords: []string{"safe"}}}
	for _, d := range agenttree.Specialists([]agent.Definition{own}, nil) {
		if d.Name == "vault" && (d.Description != "Ours" || !slices.Equal(d.Keywords, own.Keywords) || !slices.Contains(d.ToolPrefixes, "crypto_") || d.Returns == "") {
			t.Errorf("%+v", d)
		}
	}
}

// An empty prefix matches no tool.
func TestEmptyPrefix(t *testing.T) {
	t.Parallel()
	branches := agenttree.Branches([]agent.Definition{{Name: "taker", Profile: agent.Profile{ToolPrefixes: []string{"", "x_"}}}})
	for name, want := range map[string]string{"exec_shell": "", "x_y": "taker"} {
		if got := agenttree.Owner(branches, "", name); got != want {
			t.Errorf("%s belongs to %q", name, got)
		}
	}
}

// A server's tool belongs to the agent that names the server, or else to the agent with its prefix.
func TestServerTools(t *testing.T) {
	t.Parallel()
	branches := agenttree.Branches(agenttree.Specialists([]agent.Definition{{Name: "pages", MCP: []string{"playwright"}}}, []string{"playwright"}))
	for _, test := range []struct{ server, name, want string }{
		{"playwright", "browser_click", "pages"}, {"other", "browser_click", "navigator"}, {"other", "look", ""},
	} {
		if got := agenttree.Owner(branches, test.server, test.name, test.server+"_"+test.name); got != test.want {
			t.Errorf("%s of %s belongs to %q, want %q", test.name, test.server, got, test.want)
		}
	}
}

// L-22 to L-25: The orchestrator's prompt.
func TestInstruction(t *testing.T) {
	t.Parallel()
	own := agent.Definition{
		Name: "shipper", Description: "Ships with deploy_x",
		Profile: agent.Profile{
			ToolPrefixes: []string{"deploy"}, Keywords: []string{"ship", "deploy", "deploy_x", "exec_shell"},
			Accepts: "What deploy_x and deploy_x_all need", Returns: "The result of fs_read", Cannot: []string{"use exec_shell"},
		},
	}
	tools := toolsOf("exec_shell", "fs_read", "deploy_x", "deploy_x_all", "deploy", "browser_navigate", "crypto_sign", "search_web", "memory_store", "foo_bar")
	tree := agenttree.Build(agenttree.Specialists([]agent.Definition{own}, nil), tools, nil)
	text := tree.Instruction(tools, 7)
	for _, want := range []string{
		`(e.g. "operator", NOT "exec", "browser", or any abbreviation)`, "NEVER invent or abbreviate agent names", "[REJECT]", "at most 7 times",
		"CLASSIFY", "MATCH", "SELECT", "VERIFY", "DELEGATE", "- Role: ", "- Keywords: ship\n", "- Accepts: ", "- Returns: ", "- Cannot: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for _, name := range tree.Names() {
		if !strings.Contains(text, "\n## "+name+"\n") {
			t.Errorf("no row for %s", name)
		}
	}
	_, routing, _ := strings.Cut(text, "# Routing table")
	routing, _, _ = strings.Cut(routing, "# Decision protocol")
	for _, one := range tools {
		if strings.ContainsAny(one.Name, "_") && strings.Contains(text, one.Name) {
			t.Errorf("it names the tool %s", one.Name)
		}
	}
	for _, name := range []string{"read", "write", "edit", "bash", "glob", "grep", "ls", "subtask", "fetch", "todo", "deploy"} {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(strings.ReplaceAll(routing, "shipper", "")) {
			t.Errorf("the routing table has the name of the tool %s:\n%s", name, routing)
		}
	}
}

// L-23: A wrong name starts no agent, even if the intended name can be guessed.
func TestMeant(t *testing.T) {
	t.Parallel()
	branches := agenttree.Branches(agenttree.Shipped())
	for name, want := range map[string]string{
		"exec": "operator", "Operator": "operator", "browser": "navigator", "fs": "operator", "crypto_agent": "vault", "memory": "chronicler", "helper": "", "": "",
	} {
		if got, ok := agenttree.Suggest(branches, name); got != want || ok != (want != "") {
			t.Errorf("%q means %q, want %q", name, got, want)
		}
	}
}
