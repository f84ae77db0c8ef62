package grimoires

import (
	"cmp"
	"fmt"

	"github.com/coven-run/coven/internal/config/check"
)

// Merge is a step that lands the task's branch on its target.
type Merge struct {
	RequireReview bool          `yaml:"require_review" about:"wait for coven approve; true"`
	Strategy      string        `yaml:"strategy,omitempty" oneof:"squash|merge|rebase|pull-request" about:"how the change lands: landing.strategy of the configuration"` // empty for the configured one
	Message       string        `yaml:"message,omitempty" about:"template of the commit message"`                                                                        // empty for coven's own message
	Checks        []check.Check `yaml:"checks,omitempty" about:"commands instead of the configured ones"`
	Resolve       bool          `yaml:"on_conflict,omitempty" oneof:"block|agent" true:"agent" about:"agent: an agent resolves conflicts with the target, at most twice"`
	Push          bool          `yaml:"next,omitempty" oneof:"approve|push" true:"push" about:"push: the change lands elsewhere, so a waiting session recommends git push"`
}

// PullRequest is the strategy of a change that lands with a pull request on the host of the repository.
const PullRequest = "pull-request"

// FixChecksPrompt is the prompt of the agent that fixes checks which fail on the host of a pull request. Its input is output.
const FixChecksPrompt = "fix-tests"

// ResolvePrompt is the prompt of the agent that resolves a conflict with the target. Its inputs are files,
// one path per line, and target, a branch.
const ResolvePrompt = "resolve-conflict"

// RevisePrompt is the prompt of the agent that makes the changes that a person asked for. Its input is
// findings.
const RevisePrompt = "revise-change"

func newMerge() Kind { return &Merge{RequireReview: true} }

// Strategies sets the strategy of merge steps. With always, it also replaces the one of the grimoire.
func (g *Grimoire) Strategies(strategy string, always bool) error {
	for s := range g.All() {
		m, ok := s.Kind.(*Merge)
		if !ok || m.Strategy != "" && !always {
			continue
		}
		if m.Strategy = strategy; m.Resolve && strategy == "rebase" {
			return fmt.Errorf("step %s of grimoire %s has on_conflict: agent, which creates a merge commit that strategy rebase cannot use", s.Name, g.Name)
		}
	}
	return nil
}

// LandsByPullRequest reports whether a step lands the change with a pull request.
func (g *Grimoire) LandsByPullRequest() bool {
	for s := range g.All() {
		if m, ok := s.Kind.(*Merge); ok && m.Strategy == PullRequest {
			return true
		}
	}
	return false
}

// Type implements Kind.
func (*Merge) Type() string { return "merge" }

func (m *Merge) read(r *reader, at position) {
	if at.depth > 0 {
		r.doc.Fail(r.doc.Key(at.node, "type"), "a merge step cannot be inside a loop", "put it after the loop")
	}
	if m.Resolve && m.Strategy == "rebase" {
		r.doc.Fail(r.doc.Key(at.node, "on_conflict"), "on_conflict: agent creates a merge commit, which cannot be rebased", "strategy: squash or merge")
	}
	if m.Push && m.Strategy == PullRequest {
		r.doc.Fail(r.doc.Key(at.node, "next"), "next: push and strategy: pull-request exclude each other", "leave next out: coven pushes the branch")
	}
	if m.Push && !m.RequireReview {
		r.doc.Fail(r.doc.Key(at.node, "next"), "next: push needs a session that waits for you", "leave require_review out, or set it to true")
	}
	if checks := r.doc.Key(at.node, "checks"); checks.Set() && len(m.Checks) == 0 {
		r.doc.Fail(checks, "the list of checks is empty", "leave checks out to use those of the configuration")
	}
	for i, item := range r.doc.Items(r.doc.Key(at.node, "checks")) {
		if i < len(m.Checks) && m.Checks[i].Problem() != "" {
			r.doc.Fail(item, m.Checks[i].Problem(), "")
		}
	}
	r.template(textTemplate, at.step, m.Message, r.doc.Key(at.node, "message"))
}

func (m *Merge) words() []string {
	strategy := cmp.Or(m.Strategy, "squash")
	if strategy == PullRequest {
		return []string{"merge", strategy}
	}
	if m.RequireReview {
		return []string{"merge", strategy, "after a review"}
	}
	return []string{"merge", strategy, "without a review"}
}

func (m *Merge) agents() []Agent {
	var agents []Agent
	if m.Resolve {
		agents = append(agents, Agent{Prompt: ResolvePrompt, Input: map[string]string{"files": "", "target": ""}})
	}
	if m.Strategy == PullRequest {
		agents = append(agents, Agent{Prompt: FixChecksPrompt, Input: map[string]string{"output": ""}})
	}
	return agents
}
