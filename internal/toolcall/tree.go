package toolcall

import (
	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agenttree"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/tool"
)

// Tree returns the tree of a project's agents, and the tools that it divides: named ones, or, if names is nil, those that its
// agents have. Without agent.multiAgent, it is the agent of a task alone.
func Tree(p *project.Project, names []string) (agenttree.Tree, []*tool.Tool, error) {
	known := p.Agents()
	tools, err := treeTools(p, names)
	if err != nil {
		return agenttree.Tree{}, nil, err
	}
	if p.Config.Agent.MultiAgent {
		return agenttree.Build(p.Specialists(known), tools, nil), tools, nil
	}
	d, err := known.Get(grimoires.DefaultAgent)
	return agenttree.Single(d, tools), tools, err
}

// treeOf returns the tree of a project's agents; nil: each works alone.
func treeOf(p *project.Project) *grimoires.Tree {
	if !p.Config.Agent.MultiAgent {
		return nil
	}
	return &grimoires.Tree{Root: agenttree.Root, Branches: agenttree.Branches(p.Specialists(p.Agents()))}
}

func treeTools(p *project.Project, names []string) (tools []*tool.Tool, err error) {
	for _, name := range names {
		tools = append(tools, &tool.Tool{Name: name})
	}
	if names != nil {
		return tools, nil
	}
	definitions := map[string]grimoires.AgentDefinition{}
	for _, d := range p.Agents().Agents() {
		definitions[d.Name] = agents.Frozen(d)
	}
	commands, _ := p.Tools() // coven tools list says what is wrong with others
	return agents.Divisible(definitions, commands, p.Config.Rules())
}
