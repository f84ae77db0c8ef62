package engine

import (
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// Build builds the tree of a plan. It is the only place where data becomes steps.
func Build(plan *grimoires.Plan) Step {
	g := plan.Grimoire
	var tree Step = revisable{buildAll(plan, g.Steps), g.Steps, plan}
	if plan.Chat != nil {
		tree = newChat(plan)
	}
	if g.Timeout > 0 && plan.Chat == nil {
		tree = timeout{tree, "", g.Timeout}
	}
	if !g.Budget.IsZero() {
		tree = budgeted{tree, StepBudget{Max: g.Budget.Amount, Reserve: reserve(g)}}
	}
	return tree
}

// reserve returns the share of the budget that is reserved for reviewing and landing. It is 0 if the
// grimoire has no step that uses the reserve.
func reserve(g *grimoires.Grimoire) float64 {
	for s := range g.All() {
		merge, ok := s.Kind.(*grimoires.Merge)
		if ok && merge.Resolve || len(s.Reviewers()) > 0 {
			return g.Budget.Reserve
		}
	}
	return 0
}

func buildAll(plan *grimoires.Plan, specs []grimoires.Step) sequence {
	steps := make(sequence, len(specs))
	for i, spec := range specs {
		steps[i] = build(plan, spec)
	}
	return steps
}

// build wraps a step in its decorators, starting with the innermost.
func build(plan *grimoires.Plan, spec grimoires.Step) Step {
	if result, ok := plan.Given[spec.Name]; ok {
		return given{spec.Name, spec.Output, result}
	}
	if len(plan.Checks) == 0 && spec.OnlyChecks() {
		return omitted{spec.Name, spec.Output}
	}
	step := kind(plan, spec.Name, spec.Kind)
	if _, ok := spec.Kind.(*grimoires.Loop); !ok {
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

// kind returns the step for a kind. It has one case per kind.
func kind(plan *grimoires.Plan, name string, spec grimoires.Kind) Step {
	switch spec := spec.(type) {
	case *grimoires.Agent:
		return agentStep{name, spec, plan}
	case *grimoires.Script:
		return scriptStep{name, spec, tmpl.NewCommand(name, spec.Command), spec.Secrets(), plan}
	case *grimoires.Loop:
		return loop{name, buildAll(plan, spec.Steps), spec.MaxIterations, spec.OnMaxIterations, checkOf(plan, spec.Steps)}
	case *grimoires.Review:
		return reviewStep{name, spec, plan}
	case *grimoires.AgentLoop:
		return agentLoop{name, spec, buildAll(plan, spec.Steps), plan}
	case *grimoires.Merge:
		return mergeStep{name, spec, plan}
	}
	panic(fmt.Sprintf("runner/engine: no step for a %T", spec))
}
