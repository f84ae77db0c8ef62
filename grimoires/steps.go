package grimoires

import "iter"

// All yields every step in the order of the file, those of loops too.
func (g *Grimoire) All() iter.Seq[Step] {
	return func(yield func(Step) bool) { walk(g.Steps, yield) }
}

func walk(steps []Step, yield func(Step) bool) bool {
	for _, s := range steps {
		if !yield(s) {
			return false
		}
		if s.Loop != nil && !walk(s.Loop.Steps, yield) {
			return false
		}
	}
	return true
}

// OnlyChecks reports whether the step has no purpose without checks: it runs
// the checks, or is a loop whose scripts all do.
func (s Step) OnlyChecks() bool {
	if s.Script != nil {
		return s.Script.Checks
	}
	if s.Loop == nil {
		return false
	}
	found := false
	for _, inner := range s.Loop.Steps {
		switch {
		case inner.Agent != nil:
		case !inner.OnlyChecks():
			return false
		default:
			found = true
		}
	}
	return found
}

// HasAgents reports whether a run can need an agent.
func (g *Grimoire) HasAgents() bool {
	for s := range g.All() {
		if s.Agent != nil || s.Merge != nil && s.Merge.Resolve {
			return true
		}
	}
	return false
}

// Agents are the agents that steps can name.
func Agents() []string { return []string{"build"} }

// Providers are the providers that steps can name.
func Providers() []string { return []string{"claude", "codex", "qwen"} }

// resolveByAgent is the value of on_conflict that sets Merge.Resolve.
const resolveByAgent = "agent"

// ResolvePrompt is the prompt of the agent that resolves a conflict with the
// target. Its inputs are files, one path a line, and target, a branch.
const ResolvePrompt = "resolve-conflict"

// resolver is the agent of a merge step that resolves conflicts.
func resolver() *Agent {
	return &Agent{Prompt: ResolvePrompt, Input: map[string]string{"files": "", "target": ""}}
}
