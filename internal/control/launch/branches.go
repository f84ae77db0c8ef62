package launch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp/client"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// isRoot reports whether an agent only starts others.
func (l *Launcher) isRoot(name string) bool { return l.Plan.Tree != nil && l.Plan.Tree.Root == name }

// inTree reports whether an agent has the tools that its tree gives it.
func (l *Launcher) inTree(name string) bool { return l.isRoot(name) || l.Plan.Tree.Has(name) }

// has reports whether an agent has a tool.
func (l *Launcher) has(who role, t tool.Tool) bool {
	if !l.inTree(who.Agent) {
		return agents.Has(who.definition, who.Policy, t)
	}
	return agents.HasInTree(l.Plan.Tree.Branches, who.Agent, who.Policy, t)
}

// hasOfServer reports whether an agent has a tool of an MCP server, as far as its definition says.
func (l *Launcher) hasOfServer(name string, own grimoires.AgentDefinition, t client.Tool) bool {
	if !l.inTree(name) {
		return wants(own, t) || l.needs(own, t.Server)
	}
	return agenttree.Owner(l.Plan.Tree.Branches, t.Server, t.Original, t.Name) == name
}

// listed returns the IDs of the CLI tools of an agent. A CLI needs at least one, even if the gate refuses all calls.
func (l *Launcher) listed(who role) []string {
	if !l.inTree(who.Agent) {
		return agents.Listed(who.definition, who.Policy)
	}
	return slices.DeleteFunc(agents.Granted(who.Policy), func(id string) bool {
		return id != provider.ToolRead && agenttree.Owner(l.Plan.Tree.Branches, "", id) != who.Agent
	})
}

// ofTree removes tools of coven that the orchestrator of a tree does not have: it has that with which it starts others.
func (l *Launcher) ofTree(name string, all []tool.Tool) []tool.Tool {
	if !l.isRoot(name) {
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

// delegates returns an error if the orchestrator of a tree may not start an agent.
func (s *spawner) delegates(name string) error {
	if !s.isRoot(s.caller.Agent) || s.Plan.Tree.Has(name) {
		return nil
	}
	var names []string
	for _, b := range s.Plan.Tree.Branches {
		names = append(names, b.Agent)
	}
	meant, ok := agenttree.Suggest(s.Plan.Tree.Branches, name)
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
