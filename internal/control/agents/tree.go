package agents

import (
	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/tool"
)

// Arrange makes the agents of a new session a tree, and gives the orchestrator the steps of the agents that it
// replaces. The orchestrator has the permissions of the default agent, so that it can pass them on.
func Arrange(all map[string]grimoires.AgentDefinition, tree agenttree.Tree, tools []*tool.Tool, rounds int) *grimoires.Tree {
	for _, child := range tree.Children {
		d := all[child.Name]
		d.Description, d.Tools = child.Description, child.Tools
		all[child.Name] = d
	}
	root := all[grimoires.DefaultAgent]
	root.Source, root.Mode, root.Tools, root.MCP, root.Skills, root.Reflection = agent.ShippedPath+tree.Name, agent.ModePrimary, nil, nil, nil, nil
	root.Description, root.Prompt = tree.Description, tree.Instruction(tools, rounds)
	all[tree.Name] = root
	return tree.Plan(rounds)
}

// Delegate gives the orchestrator of a tree the steps of a grimoire that name no agent, or only chosen, the configured
// default agent.
func Delegate(g *grimoires.Grimoire, tree *grimoires.Tree, chosen string) {
	for _, step := range g.AgentSteps() {
		if step.Agent == "" || step.Agent == chosen && chosen != grimoires.DefaultAgent {
			step.Agent = tree.Root
		}
	}
}
