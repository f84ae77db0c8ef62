package grimoires

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// All yields all steps in file order, including those in loops.
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

// Inner returns the inner steps of a step.
func (s Step) Inner() []Step {
	if k, ok := s.Kind.(container); ok {
		return k.inner()
	}
	return nil
}

// Reviewers returns the reviewers of a step.
func (s Step) Reviewers() []Reviewer {
	if k, ok := s.Kind.(reviewing); ok {
		return k.reviewers()
	}
	return nil
}

// Plugins returns the plugins that a step names.
func (s Step) Plugins() []Use {
	if k, ok := s.Kind.(pluggable); ok {
		return k.plugins()
	}
	return nil
}

// Texts returns the templates of a step: its command or prompt, its directory, and its inputs and variables
// as NAME=TEXT.
func (s Step) Texts() []string {
	k, ok := s.Kind.(executing)
	if !ok {
		return nil
	}
	texts, named := k.texts()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		texts = append(texts, name+"="+named[name])
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// OnlyChecks reports whether the step is useless without checks: whether it runs the checks, or is a loop
// whose scripts all do.
func (s Step) OnlyChecks() bool {
	if script, ok := s.Kind.(*Script); ok {
		return script.Checks
	}
	loop, ok := s.Kind.(*Loop)
	if !ok {
		return false
	}
	found := false
	for _, inner := range loop.Steps {
		if _, ok := inner.Kind.(*Agent); ok {
			continue
		}
		if !inner.OnlyChecks() {
			return false
		}
		found = true
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

// agents returns the agents that coven itself runs in a step, and those that its reviewers are likely to
// run, with their prompts.
func (s Step) agents() []Agent {
	if k, ok := s.Kind.(spawner); ok {
		return k.agents()
	}
	return nil
}

// Prompts returns the prompts that a step names, without those that they include.
func (s Step) Prompts() []string {
	var names []string
	for _, a := range s.agents() {
		if a.Prompt != "" && !isInline(a.Prompt) {
			names = append(names, strings.TrimSuffix(a.Prompt, ".md"))
		}
	}
	return names
}

// prompted returns the agents of a step whose prompts a plan needs: those that the step starts, and the one
// for changes that a person asks for.
func (s Step) prompted() []Agent {
	agents := s.agents()
	if _, ok := s.Kind.(*Merge); ok {
		agents = append(agents, Agent{Prompt: RevisePrompt, Input: map[string]string{"findings": ""}})
	}
	return agents
}
