package toolcall

import (
	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/tool"
)

// Tree returns the tree of a project's agents, and the tools that it divides: the named ones, or those of
// the agents if names is nil. Without agent.multiAgent, the tree is the default agent alone.
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

// treeOf returns the tree of a project's agents, or nil if they work alone.
func treeOf(p *project.Project) *grimoires.Tree {
	if !p.Config.Agent.MultiAgent {
		return nil
	}
	return &grimoires.Tree{Root: agenttree.Root, Branches: agenttree.Branches(p.Specialists(p.Agents()))}
}

func treeTools(p *project.Project, names []string) (tools []*tool.Tool, err error) {
	for _, name := range names {
		tools = append(tools, &tool.Tool{Kind: tool.Kind{Name: name}})
	}
	if names != nil {
		return tools, nil
	}
	definitions := map[string]grimoires.AgentDefinition{}
	for _, d := range p.Agents().Agents() {
		definitions[d.Name] = agents.Frozen(d)
	}
	commands, _ := p.Tools() // coven tools list reports invalid tools
	return launch.Divisible(definitions, commands, p.Config.Rules())
}
