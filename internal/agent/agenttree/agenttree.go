// Package agenttree arranges agents in a tree: an orchestrator without tools, and specialists below it. Each
// specialist has the tools whose names begin with one of its prefixes.
//
// Six specialists are built in. The user and the repository can define more: all agents with
// tool_prefixes or always_include. A definition with the name of a built-in specialist
// replaces it, but inherits the fields that it does not set.
//
// A tool belongs to at most one specialist. A specialist without tools is omitted, unless it is
// always included. The orchestrator starts specialists by their exact names only, up to the configured
// number of rounds.
package agenttree

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/tool"
)

// Root is the name of the orchestrator.
const Root = agent.Orchestrator

// Rounds is the default number of agents that the orchestrator may start in one run.
const Rounds = 10

//go:embed shipped/*.md
var files embed.FS

// order is the display order of the built-in specialists.
func order() []string {
	return []string{"operator", "navigator", "vault", "librarian", "planner", "chronicler"}
}

// matching is the order in which the built-in specialists are matched with a tool: save_knowledge and
// create_skill_x belong to the librarian, even if other specialists have a matching prefix.
func matching() []string {
	return []string{"librarian", "chronicler", "navigator", "vault", "operator", "planner"}
}

// Files returns the built-in definitions by file name.
func Files() map[string]string {
	all := map[string]string{}
	for _, name := range order() {
		content, _ := files.ReadFile("shipped/" + name + ".md") // the file exists
		all[name+".md"] = string(content)
	}
	return all
}

// Shipped returns the built-in definitions in display order.
func Shipped() (all []agent.Definition) {
	for _, name := range order() {
		d, _ := agent.Parse(agent.ShippedPath+name+".md", []byte(Files()[name+".md"])) // a test checks that they are valid
		all = append(all, d)
	}
	return all
}

// Specialists returns the definitions that can be in the tree, in display order: the built-in ones, then
// the eligible ones of known. servers are the repository's MCP servers; agents that use one are eligible.
func Specialists(known []agent.Definition, servers []string) (all []agent.Definition) {
	for _, shipped := range Shipped() {
		d := shipped
		if i := slices.IndexFunc(known, func(k agent.Definition) bool { return k.Name == shipped.Name }); i >= 0 {
			d = completed(known[i], shipped)
		}
		all = append(all, d)
	}
	for _, d := range known {
		uses := slices.ContainsFunc(d.MCP, func(name string) bool { return slices.Contains(servers, name) })
		if d.Mode != agent.ModePrimary && !slices.Contains(order(), d.Name) && (len(d.ToolPrefixes) > 0 || d.AlwaysInclude || uses) {
			d.AlwaysInclude = d.AlwaysInclude || uses // the tools of a server are unknown until it runs
			all = append(all, d)
		}
	}
	return all
}

// completed sets the empty fields of d that describe it to the orchestrator.
func completed(d, shipped agent.Definition) agent.Definition {
	d.Description, d.Accepts, d.Returns = cmp.Or(d.Description, shipped.Description), cmp.Or(d.Accepts, shipped.Accepts), cmp.Or(d.Returns, shipped.Returns)
	for _, list := range []struct{ own, from *[]string }{
		{&d.ToolPrefixes, &shipped.ToolPrefixes}, {&d.Keywords, &shipped.Keywords}, {&d.Cannot, &shipped.Cannot}, {&d.Capabilities, &shipped.Capabilities},
	} {
		if len(*list.own) == 0 {
			*list.own = *list.from
		}
	}
	d.AlwaysInclude = d.AlwaysInclude || shipped.AlwaysInclude
	return d
}

// Branches returns the specialists with the rules for tool ownership, in matching order.
func Branches(specialists []agent.Definition) (all []grimoires.Branch) {
	for _, d := range specialists {
		all = append(all, grimoires.Branch{Agent: d.Name, Prefixes: d.ToolPrefixes, MCP: d.MCP})
	}
	rank := func(b grimoires.Branch) int {
		if i := slices.Index(matching(), b.Agent); i >= 0 {
			return i
		}
		return len(matching())
	}
	slices.SortStableFunc(all, func(a, b grimoires.Branch) int { return rank(a) - rank(b) })
	return all
}

// Owner returns the agent that owns a tool, or "". A tool of an MCP server belongs to the first branch that
// names the server. Otherwise, a tool belongs to the first branch with a matching prefix of one of its names.
func Owner(branches []grimoires.Branch, server string, names ...string) string {
	for _, b := range branches {
		if server != "" && slices.Contains(b.MCP, server) {
			return b.Agent
		}
	}
	for _, name := range names {
		for _, b := range branches {
			if slices.ContainsFunc(b.Prefixes, func(p string) bool { return p != "" && strings.HasPrefix(name, p) }) {
				return b.Agent
			}
		}
	}
	return ""
}

// idOf returns the ID by which a tool is matched and displayed.
func idOf(t *tool.Tool) string { return cmp.Or(t.ID, t.Name) }

// RoleToolSet groups tools by the built-in specialist that owns them.
type RoleToolSet struct {
	Operator, Navigator, Vault, Librarian, Planner, Chronicler, Unmatched []*tool.Tool
}

// PartitionTools distributes tools to the built-in specialists by name prefix. The planner gets none.
func PartitionTools(tools []*tool.Tool) RoleToolSet {
	var set RoleToolSet
	by := map[string]*[]*tool.Tool{
		"operator": &set.Operator, "navigator": &set.Navigator, "vault": &set.Vault, "librarian": &set.Librarian,
		"planner": &set.Planner, "chronicler": &set.Chronicler, "": &set.Unmatched,
	}
	branches := Branches(Shipped())
	for _, t := range tools {
		own := by[Owner(branches, "", idOf(t))]
		*own = append(*own, t)
	}
	return set
}

// Tree is the orchestrator with its specialists, or a single agent.
type Tree struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Path        string   `json:"path,omitempty"` // of its definition, if it has one
	Tools       []string `json:"tools"`
	Children    []Tree   `json:"children"`
	Unmatched   []string `json:"unmatched,omitempty"` // tools without an owner

	definition agent.Definition
}

// Single returns the tree of a single agent with all tools.
func Single(d agent.Definition, tools []*tool.Tool) Tree {
	t := Tree{Name: d.Name, Description: d.Description, Path: d.Path, Tools: []string{}, Children: []Tree{}, definition: d}
	for _, one := range tools {
		t.Tools = append(t.Tools, idOf(one))
	}
	return t
}

// Build returns the tree of the specialists that own tools or are always included. adapt is called once for
// each owned tool and returns its name in the tree. If adapt is nil, the name is the ID.
func Build(specialists []agent.Definition, tools []*tool.Tool, adapt func(owner string, t *tool.Tool) string) Tree {
	if adapt == nil {
		adapt = func(_ string, t *tool.Tool) string { return idOf(t) }
	}
	root := Tree{Name: Root, Description: "Divides the task and delegates all of it", Tools: []string{}, Children: []Tree{}}
	branches := Branches(specialists)
	owned := map[string][]*tool.Tool{}
	for _, t := range tools {
		owner := Owner(branches, "", idOf(t))
		if owner == "" {
			root.Unmatched = append(root.Unmatched, idOf(t))
		}
		owned[owner] = append(owned[owner], t)
	}
	for _, d := range specialists {
		own := owned[d.Name]
		if len(own) == 0 && !d.AlwaysInclude {
			continue
		}
		child := Tree{Name: d.Name, Description: describe(d, own), Path: d.Path, Tools: []string{}, Children: []Tree{}, definition: d}
		for _, t := range own {
			child.Tools = append(child.Tools, adapt(d.Name, t))
		}
		root.Children = append(root.Children, child)
	}
	return root
}

// Names returns the names of the specialists in tree order.
func (t Tree) Names() (all []string) {
	for _, child := range t.Children {
		all = append(all, child.Name)
	}
	return all
}

// Plan converts the tree to its form in a plan.
func (t Tree) Plan(rounds int) *grimoires.Tree {
	var included []agent.Definition
	for _, child := range t.Children {
		included = append(included, child.definition)
	}
	return &grimoires.Tree{Root: t.Name, Rounds: rounds, Branches: Branches(included)}
}

// Suggest guesses the agent for a misspelled name, by ignoring case or by tool prefixes.
func Suggest(branches []grimoires.Branch, name string) (string, bool) {
	word := strings.ToLower(name)
	for _, b := range branches {
		if b.Agent == word {
			return b.Agent, true
		}
	}
	for _, b := range branches {
		for _, p := range b.Prefixes {
			if bare := strings.TrimRight(p, "_"); bare != "" && (strings.HasPrefix(word, bare) || word != "" && strings.HasPrefix(bare, word)) {
				return b.Agent, true
			}
		}
	}
	return "", false
}
