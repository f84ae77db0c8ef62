// Package agents reads which agents a plan has: their definitions, tools and models, the tree in which they may be
// arranged, and who may start whom. It runs none of them: see package launch.
package agents

import (
	"cmp"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/exit"
)

// Definitions returns the definitions of all agents that a session of a grimoire can use. It copies their models and
// providers to the grimoire's steps and reviewers. model overrides the models of definitions for this run.
func Definitions(known *agent.Registry, from *grimoires.Library, g *grimoires.Grimoire, model string) (map[string]grimoires.AgentDefinition, error) {
	all := map[string]grimoires.AgentDefinition{}
	for _, d := range known.Agents() { // an agent may start them
		all[d.Name] = Frozen(d)
	}
	for _, step := range append(g.AgentSteps(), &grimoires.Agent{}) {
		if step.Agent == spawn.User {
			continue
		}
		d, err := known.Get(cmp.Or(step.Agent, grimoires.DefaultAgent))
		if err != nil {
			return nil, missing(from, g, step.Agent, err)
		}
		if d.Mode == agent.ModeSubagent {
			return nil, exit.Usagef("coven agents show "+d.Name, "grimoire %s: agent '%s' has mode subagent and cannot be started as a primary agent", g.Name, d.Name)
		}
		step.Provider = cmp.Or(step.Provider, d.Provider)
		if model == "" {
			step.Model = cmp.Or(step.Model, d.Model)
		}
	}
	for step := range g.All() {
		for _, judge := range step.Judges() {
			name := judge.Agent()
			if name == "" {
				continue
			}
			d, err := known.Get(name)
			if err != nil {
				return nil, missing(from, g, name, err)
			}
			if model := cmp.Or(judge.With[grimoires.ModelOption], model, d.Model); model != "" {
				judge.With[grimoires.ModelOption] = model
			}
		}
	}
	return all, nil
}

// missing returns the error for an agent that a grimoire names, with the place if it is known.
func missing(from *grimoires.Library, g *grimoires.Grimoire, name string, err error) error {
	const next = "coven agents list"
	files, _ := from.ValidateName(g.Name) // the grimoire has been read
	for _, file := range files {
		for _, use := range file.Plugins {
			if use.Kind == grimoires.UseAgent && use.Name == name {
				return exit.Usagef(next, "%s:%d:%d: grimoire %s: %w", file.File, use.Line, use.Column, g.Name, err)
			}
		}
	}
	return exit.Usagef(next, "grimoire %s: %w", g.Name, err)
}

// Frozen returns a definition in the form that plans have.
func Frozen(d agent.Definition) grimoires.AgentDefinition {
	turns := 0
	if d.LimitsTurns {
		turns = d.MaxTurns
	}
	limit := time.Duration(d.ApprovalTimeout) * time.Second
	if limit == agent.ApprovalTimeout {
		limit = 0
	}
	var reflects *grimoires.Reflection
	if d.EnableReflection {
		reflects = &grimoires.Reflection{MaxRetries: d.MaxRetries, Criteria: d.ReflectionCriteria}
	}
	return grimoires.AgentDefinition{
		Reflection: reflects, ApprovalTimeout: limit, ApproveOnTimeout: d.ApprovalOnTimeout == agent.TimeoutApproves,
		MaxTurns: turns, Tools: d.Tools, MCP: d.MCP, Skills: d.Skills,
		Source: d.Path, Description: d.Description, Mode: d.Mode, Model: d.Model, Provider: d.Provider, Timeout: d.Timeout,
		Prompt: d.Prompt, Permissions: d.Permissions, Asks: d.RequiresApproval,
	}
}

// ReviewProviders returns the providers of the agents that reviewers and arbiters run, by the name
// of their step.
func ReviewProviders(plan *grimoires.Plan) map[string][]string {
	all := map[string][]string{}
	for step := range plan.Grimoire.All() {
		for _, judge := range step.Judges() {
			if judge.Plugin == grimoires.AgentReviewer {
				all[step.Name] = append(all[step.Name], cmp.Or(plan.Agents[judge.Agent()].Provider, plan.Provider))
			}
		}
	}
	return all
}
