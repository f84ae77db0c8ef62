package control

import (
	"cmp"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/exit"
)

// definitions returns the definitions of the agents that a grimoire needs, and fills the models
// and providers of its steps from them. A model that a person chose for the run is not replaced.
func (c *Controller) definitions(g *grimoires.Grimoire, model string) (map[string]grimoires.AgentDefinition, error) {
	known := c.Project.Agents()
	all := map[string]grimoires.AgentDefinition{}
	for _, step := range append(g.AgentSteps(), &grimoires.Agent{}) {
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
		all[d.Name] = grimoires.AgentDefinition{Source: d.Path, Prompt: d.Prompt, Permissions: d.Permissions, Asks: d.RequiresApproval}
	}
	return all, nil
}
