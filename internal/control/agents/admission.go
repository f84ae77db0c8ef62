package agents

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// Admission returns the rules by which requests of a session for subagents are admitted.
func Admission(plan *grimoires.Plan) spawn.Admission {
	return spawn.Admission{
		MaxDepth: spawn.MaxDepth, DefaultModel: plan.Model, Rules: plan.Rules,
		KnowsModel: func(model string) error { return cmp.Or(knownModel(model), checkModel(plan.Provider, model)) },
		Find:       func(name string) (spawn.Definition, error) { return Find(plan, name) },
	}
}

// Primary returns the agent at depth 0 with which the session of a plan starts.
func Primary(plan *grimoires.Plan) string {
	for _, step := range plan.Grimoire.AgentSteps() {
		return cmp.Or(step.Agent, grimoires.DefaultAgent)
	}
	return grimoires.DefaultAgent
}

// Admit returns an error if the subagent that a person requests in a plan may not start.
func Admit(plan *grimoires.Plan) error {
	if plan.Spawn == nil {
		return nil
	}
	_, err := Admission(plan).Admit(Person(plan, "/"), RequestOf(plan))
	return err
}

// Person returns the caller of coven spawn. Its policy has the permissions that coven grants by default.
func Person(plan *grimoires.Plan, root string) spawn.Caller {
	return spawn.Caller{Agent: spawn.User, Chain: []string{spawn.User}, Policy: permission.OfPrimary(root, spawn.User, nil, nil, plan.Rules)}
}

// RequestOf returns the request of coven spawn in a plan.
func RequestOf(plan *grimoires.Plan) spawn.Request {
	return spawn.Request(*plan.Spawn)
}

func knownModel(model string) error {
	if agent.KnownModel(model) {
		return nil
	}
	return fmt.Errorf("invalid model '%s'%s", model, suggestion(model, agent.Models()))
}

func suggestion(word string, known []string) string {
	if near, ok := didyoumean.Nearest(word, known); ok {
		return fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return ""
}

// Find returns the definition of an agent in a plan.
func Find(plan *grimoires.Plan, name string) (spawn.Definition, error) {
	d, ok := plan.Agents[name]
	if !ok {
		names := slices.Sorted(maps.Keys(plan.Agents))
		return spawn.Definition{}, fmt.Errorf("agent not found: '%s'%s", name, suggestion(name, names))
	}
	return spawn.Definition{Model: d.Model, Mode: d.Mode, Permissions: d.Permissions, Asks: d.Asks}, nil
}
