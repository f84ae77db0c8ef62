package control

import (
	"cmp"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/spawn"
)

// definitions returns the definitions of all agents that can be used, and fills the models
// and providers of its steps from them. A model that a person chose for the run is not replaced.
func (c *Controller) definitions(g *grimoires.Grimoire, model string) (map[string]grimoires.AgentDefinition, error) {
	known := c.Project.Agents()
	all := map[string]grimoires.AgentDefinition{}
	for _, d := range known.Agents() { // an agent may start them
		all[d.Name] = frozen(d)
	}
	for _, step := range append(g.AgentSteps(), &grimoires.Agent{}) {
		if step.Agent == spawn.User {
			continue
		}
		d, err := known.Get(cmp.Or(step.Agent, grimoires.DefaultAgent))
		if err != nil {
			return nil, exit.Usagef("coven agents list", "grimoire %s: %w", g.Name, err)
		}
		if d.Mode == agent.ModeSubagent {
			return nil, exit.Usagef("coven agents show "+d.Name, "grimoire %s: agent '%s' has mode subagent and cannot be started as a primary agent", g.Name, d.Name)
		}
		step.Provider = cmp.Or(step.Provider, d.Provider)
		if model == "" {
			step.Model = cmp.Or(step.Model, d.Model)
		}
	}
	return all, nil
}

// frozen returns what a plan has of a definition.
func frozen(d agent.Definition) grimoires.AgentDefinition {
	return grimoires.AgentDefinition{
		Source: d.Path, Description: d.Description, Mode: d.Mode, Model: d.Model, Provider: d.Provider, Timeout: d.Timeout,
		Prompt: d.Prompt, Permissions: d.Permissions, Asks: d.RequiresApproval,
	}
}
