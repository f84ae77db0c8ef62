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

// Admission returns what the requests of a session are judged by.
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

// Admit returns why the subagent that a person asks for in a plan may not start; nil: it may, or
// the plan has none.
func Admit(plan *grimoires.Plan) error {
	if plan.Spawn == nil {
		return nil
	}
	_, err := Admission(plan).Admit(Person(plan, "/"), RequestOf(plan))
	return err
}

// Person returns the caller of coven spawn, who may let a subagent do what coven grants by itself.
func Person(plan *grimoires.Plan, root string) spawn.Caller {
	return spawn.Caller{Agent: spawn.User, Chain: []string{spawn.User}, Policy: permission.OfPrimary(root, spawn.User, nil, nil, plan.Rules)}
}

// RequestOf returns the request of coven spawn in a plan.
func RequestOf(plan *grimoires.Plan) spawn.Request {
	r := plan.Spawn
	return spawn.Request{Agent: r.Agent, Task: r.Task, Permissions: r.Permissions, Model: r.Model, TaskID: r.TaskID}
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

// Find returns a definition of the plan.
func Find(plan *grimoires.Plan, name string) (spawn.Definition, error) {
	d, ok := plan.Agents[name]
	if !ok {
		names := slices.Sorted(maps.Keys(plan.Agents))
		return spawn.Definition{}, fmt.Errorf("agent not found: '%s'%s", name, suggestion(name, names))
	}
	return spawn.Definition{Model: d.Model, Mode: d.Mode, Permissions: d.Permissions, Asks: d.Asks}, nil
}
