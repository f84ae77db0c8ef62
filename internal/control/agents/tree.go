package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp/client"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// Divisible returns the tools that a tree divides between its agents: those that the default agent may use, without those
// that everybody has and those with which agents start others.
func Divisible(all map[string]grimoires.AgentDefinition, commands map[string]grimoires.CommandTool, rules []permission.Rule) ([]*tool.Tool, error) {
	described, err := Described(all, commands)
	if err != nil {
		return nil, err
	}
	own := all[grimoires.DefaultAgent]
	granted := permission.OfPrimary("/", grimoires.DefaultAgent, own.Permissions, own.Asks, rules).Grants()
	var tools []*tool.Tool
	for _, t := range described {
		if !tool.ForEveryone(t.Name) && t.ID != tool.Subtask.ID && (t.Permission == "" || slices.Contains(granted, t.Permission)) {
			tools = append(tools, &t)
		}
	}
	return tools, nil
}

// Arrange makes the agents of a new session a tree, and gives the orchestrator the steps of the agents that it
// replaces. The orchestrator may do what the default agent may, so that those that it starts may.
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

// Delegate lets the orchestrator of a tree work on the steps of a grimoire that name no agent. chosen is the configured
// default agent, which such steps may have been given.
func Delegate(g *grimoires.Grimoire, tree *grimoires.Tree, chosen string) {
	for _, step := range g.AgentSteps() {
		if step.Agent == "" || step.Agent == chosen && chosen != grimoires.DefaultAgent {
			step.Agent = tree.Root
		}
	}
}

// isRoot reports whether an agent only starts others.
func (c *Agents) isRoot(name string) bool { return c.Plan.Tree != nil && c.Plan.Tree.Root == name }

// inTree reports whether an agent has the tools that its tree gives it.
func (c *Agents) inTree(name string) bool { return c.isRoot(name) || c.Plan.Tree.Has(name) }

// has reports whether an agent has a tool.
func (c *Agents) has(who role, t tool.Tool) bool {
	if !c.inTree(who.Agent) {
		return Has(who.definition, who.Policy, t)
	}
	return HasInTree(c.Plan.Tree.Branches, who.Agent, who.Policy, t)
}

// HasInTree reports whether an agent of a tree has a tool that the tree divides.
func HasInTree(branches []grimoires.Branch, name string, policy *permission.Policy, t tool.Tool) bool {
	granted := t.Permission == "" || slices.Contains(policy.Grants(), t.Permission)
	return granted && agenttree.Owner(branches, "", cmp.Or(t.ID, t.Name)) == name
}

// hasOfServer reports whether an agent has a tool of an MCP server, as far as its definition says.
func (c *Agents) hasOfServer(name string, own grimoires.AgentDefinition, t client.Tool) bool {
	if !c.inTree(name) {
		return wants(own, t) || c.needs(own, t.Server)
	}
	return agenttree.Owner(c.Plan.Tree.Branches, t.Server, t.Original, t.Name) == name
}

// listed returns the tools of a CLI that an agent has. A CLI must know of at least one, whatever the gate will say.
func (c *Agents) listed(who role) []string {
	if !c.inTree(who.Agent) {
		return listed(who.definition, who.Policy)
	}
	return slices.DeleteFunc(toolsOf(who.Policy), func(id string) bool {
		return id != provider.ToolRead && agenttree.Owner(c.Plan.Tree.Branches, "", id) != who.Agent
	})
}

// ofTree removes tools of coven that the orchestrator of a tree does not have: it has that with which it starts others.
func (c *Agents) ofTree(name string, all []tool.Tool) []tool.Tool {
	if !c.isRoot(name) {
		return all
	}
	return slices.DeleteFunc(all, func(t tool.Tool) bool { return t.Name != tool.SpawnAgent.Name })
}

// lacks returns an error if an agent of a tree calls a tool that the tree does not give it, as an agent CLI can try.
func (a *agentRun) lacks(call gate.Call) error {
	if !a.inTree(a.Agent) {
		return nil
	}
	called := gate.ToolName(call)
	if _, ok := tool.Find(a.job.Offered(), called); ok {
		return nil
	}
	ids, _ := tool.IDs([]string{called})
	if slices.ContainsFunc(ids, func(id string) bool { return agenttree.Owner(a.Plan.Tree.Branches, "", id) == a.Agent }) {
		return nil
	}
	return fmt.Errorf("agent '%s' has no tool '%s'", a.Agent, called)
}

// delegates returns why the orchestrator of a tree may not start an agent; nil: it may.
func (s *spawner) delegates(name string) error {
	if !s.isRoot(s.caller.Agent) || s.Plan.Tree.Has(name) {
		return nil
	}
	var names []string
	for _, b := range s.Plan.Tree.Branches {
		names = append(names, b.Agent)
	}
	meant, ok := agenttree.Meant(s.Plan.Tree.Branches, name)
	if !ok {
		meant, ok = didyoumean.Nearest(name, names)
	}
	if ok {
		return fmt.Errorf("unknown agent '%s' (did you mean '%s'?)", name, meant)
	}
	return fmt.Errorf("unknown agent '%s': the agents are %s", name, strings.Join(names, ", "))
}

// round counts a delegation of the orchestrator of a tree, or returns why there may be no more.
func (s *spawner) round() error {
	if !s.isRoot(s.caller.Agent) {
		return nil
	}
	s.Spawns.mu.Lock()
	defer s.Spawns.mu.Unlock()
	path := s.caller.Path
	if s.Spawns.rounds == nil {
		s.Spawns.rounds = map[string]int{}
	}
	if _, counted := s.Spawns.rounds[path]; !counted { // the step may have begun in another process
		for _, e := range s.Session.Journal.Of(event.SpawnQueued) {
			if e.Path == event.SpawnPath(path, event.As[event.Spawn](e).ID) {
				s.Spawns.rounds[path]++
			}
		}
	}
	if most := s.Plan.Tree.Rounds; s.Spawns.rounds[path] >= most {
		return fmt.Errorf("agent '%s' has delegated %d times, the limit of agent.max_rounds: finish with what was reported", s.caller.Agent, most)
	}
	s.Spawns.rounds[path]++
	return nil
}
