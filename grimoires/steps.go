package grimoires

import "iter"

// All yields every step in file order, including those in loops.
func (g *Grimoire) All() iter.Seq[Step] {
	return func(yield func(Step) bool) { walk(g.Steps, yield) }
}

func walk(steps []Step, yield func(Step) bool) bool {
	for _, s := range steps {
		if !yield(s) {
			return false
		}
		if !walk(s.Inner(), yield) {
			return false
		}
	}
	return true
}

// Inner returns the steps inside a step.
func (s Step) Inner() []Step {
	switch {
	case s.Loop != nil:
		return s.Loop.Steps
	case s.AgentLoop != nil:
		return s.AgentLoop.Steps
	}
	return nil
}

// Reviewers returns the reviewers of a step.
func (s Step) Reviewers() []Judge {
	switch {
	case s.Review != nil:
		return s.Review.Reviewers
	case s.AgentLoop != nil:
		return s.AgentLoop.Reviewers
	}
	return nil
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

// HasAgents reports whether a run may need an agent.
func (g *Grimoire) HasAgents() bool {
	for s := range g.All() {
		if len(s.agents()) > 0 {
			return true
		}
	}
	return false
}

// agents returns the agents that coven itself runs in a step, and those that its
// judges are likely to run, with their prompts.
func (s Step) agents() []Agent {
	var all []Agent
	switch {
	case s.Agent != nil:
		all = append(all, *s.Agent)
	case s.Merge != nil && s.Merge.Resolve:
		all = append(all, Agent{Prompt: ResolvePrompt, Input: map[string]string{"files": "", "target": ""}})
	case s.AgentLoop != nil:
		all = append(all, Agent{Prompt: s.AgentLoop.Fix, Input: map[string]string{"findings": "", "reason": ""}})
		all = append(all, s.AgentLoop.Arbiter.agents()...)
	}
	for _, j := range s.Reviewers() {
		all = append(all, j.agents()...)
	}
	return all
}

func (j Judge) agents() []Agent {
	if j.Prompt == "" {
		return nil
	}
	return []Agent{{Prompt: j.Prompt}}
}

// Agents returns the agents that steps can name.
func Agents() []string { return []string{"build"} }

// resolveByAgent is the value of on_conflict that sets Merge.Resolve.
const resolveByAgent = "agent"

// ResolvePrompt is the prompt of the agent that resolves a conflict with the target.
// Its inputs are files, one path per line, and target, a branch.
const ResolvePrompt = "resolve-conflict"

// ReviewPrompt and ArbiterPrompt are the default prompts of the judges "agent";
// FixPrompt is that of the fixing agent.
const (
	ReviewPrompt  = "review"
	ArbiterPrompt = "is-actionable"
	FixPrompt     = "apply-review"
)

// AgentJudge is the judge that runs an agent.
const AgentJudge = "agent"
