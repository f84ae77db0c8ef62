// Package agenttree arranges agents in a tree: an orchestrator without tools, and below it specialists, each of
// which has the tools whose names begin with its prefixes.
//
// The specialists are definitions like those of all agents: six that coven ships, and those of the user and
// the repository that have tool_prefixes, or are always included. A definition of the name of one of the six
// replaces it, but keeps what it leaves out.
//
// Rules. A tool belongs to at most one specialist. A specialist without a tool is left out, unless it is
// always included. The orchestrator starts specialists by their exact names only, and at most so many as the
// configuration says.
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

// Rounds is how many agents the orchestrator starts in one run, unless the configuration says otherwise.
const Rounds = 10

//go:embed shipped/*.md
var files embed.FS

// order is the order in which the shipped specialists are shown.
func order() []string {
	return []string{"operator", "navigator", "vault", "librarian", "planner", "chronicler"}
}

// matching is the order in which the shipped specialists are asked for a tool: save_knowledge and
// create_skill_x are the librarian's, whatever prefixes the others have.
func matching() []string {
	return []string{"librarian", "chronicler", "navigator", "vault", "operator", "planner"}
}

// Files returns the shipped definitions by their file names.
func Files() map[string]string {
	all := map[string]string{}
	for _, name := range order() {
		content, _ := files.ReadFile("shipped/" + name + ".md") // it is there
		all[name+".md"] = string(content)
	}
	return all
}

// Shipped returns the shipped definitions, in the order in which they are shown.
func Shipped() (all []agent.Definition) {
	for _, name := range order() {
		d, _ := agent.Parse(agent.ShippedPath+name+".md", []byte(Files()[name+".md"])) // a test parses them
		all = append(all, d)
	}
	return all
}

// Specialists returns those of some definitions that can be in the tree, in the order in which they are shown:
// the shipped ones, then the others as given. A repository that has MCP servers can have those that use one.
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
			d.AlwaysInclude = d.AlwaysInclude || uses // what tools a server has is known when it runs
			all = append(all, d)
		}
	}
	return all
}

// completed returns a definition with what it leaves out of what the orchestrator is told.
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

// Branches returns what decides to which of some specialists a tool belongs.
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

// Owner returns the agent to which a tool belongs; empty: none. The tool of an MCP server belongs to the first that
// names the server, and otherwise, like any other, to the first with a prefix of one of its names.
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

// idOf returns the ID of a tool, by which it is matched and shown.
func idOf(t *tool.Tool) string { return cmp.Or(t.ID, t.Name) }

// RoleToolSet has tools by the shipped specialist to which they belong.
type RoleToolSet struct {
	Operator, Navigator, Vault, Librarian, Planner, Chronicler, Unmatched []*tool.Tool
}

// PartitionTools divides tools between the shipped specialists, by the prefixes of their names. The planner has none.
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

// Tree is the orchestrator, or the one agent that there is without a tree.
type Tree struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Path        string   `json:"path,omitempty"` // of its definition; empty: it has none
	Tools       []string `json:"tools"`
	Children    []Tree   `json:"children"`
	Unmatched   []string `json:"unmatched,omitempty"` // tools that no agent has

	definition agent.Definition
}

// Single returns the tree of one agent that has all tools.
func Single(d agent.Definition, tools []*tool.Tool) Tree {
	t := Tree{Name: d.Name, Description: d.Description, Path: d.Path, Tools: []string{}, Children: []Tree{}, definition: d}
	for _, one := range tools {
		t.Tools = append(t.Tools, idOf(one))
	}
	return t
}

// Build returns the tree of specialists that have some of the tools, or are always included. adapt is called once for
// each tool that has an owner, and returns how the tree names it; nil: by its ID.
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

// Names returns the names of the specialists, in the order of the tree.
func (t Tree) Names() (all []string) {
	for _, child := range t.Children {
		all = append(all, child.Name)
	}
	return all
}

// Plan returns what a plan has of the tree.
func (t Tree) Plan(rounds int) *grimoires.Tree {
	var included []agent.Definition
	for _, child := range t.Children {
		included = append(included, child.definition)
	}
	return &grimoires.Tree{Root: t.Name, Rounds: rounds, Branches: Branches(included)}
}

// Meant returns the agent of a tree that a wrong name probably means: by another case, or by what it can do.
func Meant(branches []grimoires.Branch, name string) (string, bool) {
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
