package project

import (
	"path/filepath"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/evaluator"
)

// Agents reads the definitions of all agents: those that coven ships, the user's, and, in a
// repository, those in .claude/agents and .coven/agents.
func (p *Project) Agents() *agent.Registry {
	user := filepath.Join(p.Env.UserDir(), "agents")
	places := []agent.Place{{Show: "coven:", Source: agent.SourceSystem, Made: p.serverAgents()}, {Dir: user, Show: user, Source: agent.SourceSystem}}
	if p.Repo != nil {
		for _, dir := range []struct{ path, source string }{{".claude/agents", agent.SourceClaude}, {".coven/agents", agent.SourceProject}} {
			places = append(places, agent.Place{Dir: filepath.Join(p.Repo.Root, dir.path), Show: dir.path, Source: dir.source})
		}
	}
	known := agent.Load(p.Scripts(), places...)
	known.Knows(p.toolNames())
	return known
}

// Scripts evaluates the definitions that are TypeScript.
func (p *Project) Scripts() *evaluator.Evaluator {
	if p.scripts != nil {
		return p.scripts
	}
	return &evaluator.Evaluator{Self: p.Env.Self} // a test made the project
}
