package engine

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/tmpl"
)

// Build makes the tree of a plan. It is the only place where data becomes
// steps.
func Build(plan *grimoires.Plan) Step {
	g := plan.Grimoire
	tree := buildAll(plan, g.Steps)
	if g.Timeout > 0 {
		tree = timeout{tree, "", g.Timeout}
	}
	if g.Budget != (budget.Amount{}) {
		tree = budgeted{tree, StepBudget{Max: g.Budget, Reserve: reserve(g)}}
	}
	return tree
}

// reserve is the share of a budget that is kept for steps that review and land,
// when there are any that use it.
func reserve(g *grimoires.Grimoire) float64 {
	for s := range g.All() {
		if s.Merge != nil && s.Merge.Resolve || len(s.Reviewers()) > 0 {
			return g.Reserve
		}
	}
	return 0
}

func buildAll(plan *grimoires.Plan, specs []grimoires.Step) Step {
	steps := make(sequence, len(specs))
	for i, spec := range specs {
		steps[i] = build(plan, spec)
	}
	return steps
}

// build wraps a step in its decorators, the innermost first.
func build(plan *grimoires.Plan, spec grimoires.Step) Step {
	if len(plan.Checks) == 0 && spec.OnlyChecks() {
		return omitted{spec.Name, spec.Output}
	}
	step := kind(plan, spec)
	if spec.Loop == nil {
		step = render{step, spec.Name}
	}
	if spec.Timeout > 0 {
		step = timeout{step, spec.Name, spec.Timeout}
	}
	if spec.Retries > 0 {
		step = retry{step, spec.Name, spec.Retries, spec.Backoff}
	}
	if spec.Budget != (budget.Amount{}) {
		step = budgeted{step, StepBudget{Name: spec.Name, Max: spec.Budget}}
	}
	step = record{step, spec.Name, spec.Output}
	step = onFailure{step, spec.OnFail, spec.ExitLoop}
	if spec.When != "" {
		step = when{step, spec.Name, spec.Output, tmpl.NewCondition(spec.Name+" when", spec.When)}
	}
	return step
}

func kind(plan *grimoires.Plan, spec grimoires.Step) Step {
	switch {
	case spec.Agent != nil:
		return agentStep{spec.Name, *spec.Agent, plan}
	case spec.Script != nil:
		return scriptStep{spec.Name, *spec.Script, tmpl.NewCommand(spec.Name, spec.Script.Command), spec.Script.Secrets(), plan}
	case spec.Review != nil:
		return reviewStep{spec.Name, *spec.Review, plan}
	case spec.AgentLoop != nil:
		return agentLoop{spec.Name, *spec.AgentLoop, buildAll(plan, spec.AgentLoop.Steps), plan}
	case spec.Merge != nil:
		return mergeStep{spec.Name, *spec.Merge, plan}
	default:
		body := spec.Loop.Steps
		return loop{spec.Name, buildAll(plan, body), spec.Loop.MaxIterations, spec.Loop.OnMaxIterations, checkOf(plan, body)}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
