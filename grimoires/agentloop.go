package grimoires

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/text/oneline"
)

// AgentLoop is a step that repeats its steps, a review of the change, and an agent that fixes the findings,
// until the reviewers pass the change or the arbiter decides that the findings are not worth another round.
type AgentLoop struct {
	MaxIterations   int        `yaml:"max_iterations" about:"rounds: 1 to 100; 3"`
	OnMaxIterations OnFail     `yaml:"on_max_iterations" oneof:"block|continue|fail|exit" about:"block; exit is fail"`
	Steps           []Step     `yaml:"steps,omitempty" later:"true" about:"of each round, before the review"`
	Reviewers       []Reviewer `yaml:"reviewers" need:"true" later:"true" about:"reviewers, which run at the same time: names of plugins, or maps with plugin, name, prompt, with"`
	Arbiter         Reviewer   `yaml:"arbiter" later:"true" about:"arbiter, which decides whether findings are worth another round: name of a plugin, or a map with plugin, prompt, with; rules"`
	Fix             string     `yaml:"fix" about:"prompt of the agent that fixes findings; apply-review"` // its inputs are findings and reason
	Patience        int        `yaml:"patience,omitempty" about:"rounds in a row without fewer findings after which the loop ends like at max_iterations; any number"`
}

// FixPrompt is the default prompt of the agent that fixes findings.
const FixPrompt = "apply-review"

func newAgentLoop() Kind {
	return &AgentLoop{
		MaxIterations: defaultIterations, OnMaxIterations: Block,
		Arbiter: Reviewer{Name: "rules", Plugin: "rules"}, Fix: FixPrompt,
	}
}

// Type implements Kind.
func (*AgentLoop) Type() string { return "agent-loop" }

func (l *AgentLoop) read(r *reader, at position) {
	l.Reviewers = r.reviewers(at)
	r.limit(at, &l.MaxIterations, &l.OnMaxIterations)
	if n := r.doc.Key(at.node, "arbiter"); n.Set() {
		l.Arbiter = r.reviewer(n, at.step, "arbiter", ArbiterPrompt)
	}
	if n := r.doc.Key(at.node, "patience"); n.Set() && (l.Patience < 1 || l.Patience > maxIterations) {
		r.doc.Fail(n, fmt.Sprintf("patience must be 1 to %d", maxIterations), "")
	}
	r.template(promptTemplate, at.step, l.Fix, r.doc.Key(at.node, "fix"))
	if nodes := r.nodes(at.node, "steps"); r.doc.Key(at.node, "steps").Set() {
		l.Steps = r.inner(at, nodes)
		for i, inner := range l.Steps {
			if i < len(nodes) && slices.Contains(roundLeaves(), inner.Name) {
				r.doc.Fail(nodes[i], fmt.Sprintf("each round of %q already has a part named %q", at.step, inner.Name), "give the step another name")
			}
		}
	}
	if slices.ContainsFunc(l.Steps, func(inner Step) bool { return inner.ExitLoop }) {
		r.doc.Fail(at.node, fmt.Sprintf("a step cannot exit %q: only its reviewers end an agent-loop", at.step), "put the step into a loop")
	}
}

// roundLeaves returns the names of the parts of a round that follow its steps.
func roundLeaves() []string { return []string{"review", "arbiter", "fix"} }

func (l *AgentLoop) words() []string {
	return []string{
		"agent-loop", "review by " + reviewerNames(l.Reviewers), "arbiter " + l.Arbiter.Name,
		"fixed with " + promptText(l.Fix), "at most " + oneline.Count(l.MaxIterations, "round"),
	}
}

func (l *AgentLoop) inner() []Step { return l.Steps }

func (l *AgentLoop) reviewers() []Reviewer { return l.Reviewers }

func (l *AgentLoop) agents() []Agent {
	fix := Agent{Prompt: l.Fix, Input: map[string]string{"findings": "", "reason": ""}}
	return append([]Agent{fix}, agentsOf(append([]Reviewer{l.Arbiter}, l.Reviewers...))...)
}

func (l *AgentLoop) plugins() []Use {
	return append(usesOf(l.Reviewers), Use{Kind: "arbiter", Name: l.Arbiter.Plugin})
}

func (*AgentLoop) describe(s *schema.Schema) {
	schema.Set(s, "steps", listOf(ofRound()))
	schema.Set(s, "reviewers", reviewersSchema())
	schema.Set(s, "arbiter", reviewerSchema())
	bound(s, "max_iterations", maxIterations)
	bound(s, "patience", maxIterations)
}

// ofRound returns the schema of a step inside an agent-loop. It cannot exit the loop, and cannot have the
// name of a part of a round.
func ofRound() *schema.Schema {
	s, taken := outsideLoop(), schema.Of(struct {
		Name text `yaml:"name" need:"true"`
	}{})
	schema.Set(taken, "name", schema.Words(roundLeaves()...))
	taken.AdditionalProperties = nil
	s.AllOf = append(s.AllOf, &schema.Schema{Not: taken})
	return s
}
