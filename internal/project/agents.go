package project

import (
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/agent/evaluator"
)

// Agents reads the definitions of all agents, in ascending precedence: the built-in ones, in a repository those
// in .claude/agents, which are written for another program, the user's, and the repository's in .coven/agents.
func (p *Project) Agents() *agent.Registry {
	user := filepath.Join(p.Env.UserDir(), "agents")
	specialists := map[string]string{}
	if p.Config.Agent.MultiAgent {
		specialists = agenttree.Files()
	}
	made := func(files map[string]string) agent.Place {
		return agent.Place{Show: agent.ShippedPath, Source: agent.SourceSystem, Made: files}
	}
	users := agent.Place{Dir: user, Show: user, Source: agent.SourceSystem}
	places := []agent.Place{made(specialists), made(p.serverAgents()), users}
	if p.Repo != nil {
		inRepo := func(dir, source string) agent.Place {
			return agent.Place{Root: p.definitions().Root, Dir: dir, Show: dir, Source: source}
		}
		claude, own := inRepo(".claude/agents", agent.SourceClaude), inRepo(".coven/agents", agent.SourceProject)
		places = []agent.Place{made(specialists), made(p.serverAgents()), claude, users, own}
	}
	known := agent.Load(p.Scripts(), places...)
	known.Knows(p.toolNames())
	return known
}

// Specialists returns the agents that can be in a tree; see package agenttree.
func (p *Project) Specialists(known *agent.Registry) []agent.Definition {
	var names []string
	if p.Repo != nil {
		all, _, _ := p.PlannedServers() // the error is reported when a task starts
		for _, s := range all {
			names = append(names, s.Name)
		}
	}
	return slices.DeleteFunc(agenttree.Specialists(known.Agents(), names), func(d agent.Definition) bool {
		usable, err := known.Get(d.Name) // a built-in one may be disabled
		return err != nil || usable.Mode == agent.ModePrimary
	})
}

// Scripts returns the evaluator of TypeScript definitions.
func (p *Project) Scripts() *evaluator.Evaluator {
	if p.scripts != nil {
		return p.scripts
	}
	return &evaluator.Evaluator{Self: p.Env.Self} // the project was created by a test
}
