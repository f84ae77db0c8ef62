package grimoires

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Review is a step in which reviewers judge the change.
type Review struct {
	Reviewers []Reviewer `yaml:"reviewers" need:"true" later:"true" about:"reviewers, which run at the same time: names of plugins, or maps with plugin, name, prompt, with"`
}

// Reviewer is a reviewer or an arbiter of a step.
type Reviewer struct {
	Name   string            `yaml:"name" about:"name in the record; default: name of the plugin"` // unique in the step
	Plugin string            `yaml:"plugin" need:"true" about:"agent, command, rules (arbiters), or coven-reviewer-NAME, coven-arbiter-NAME"`
	Prompt string            `yaml:"prompt,omitempty" about:"name of a prompt, or a text with more than one line; default for agent: review, for arbiters is-actionable"` // rendered into the option "prompt"; may be empty
	With   map[string]string `yaml:"with,omitempty" about:"options of the plugin"`
}

// AgentReviewer is the reviewer or arbiter that runs an agent. Its options are the names of the agent's
// definition and model.
const (
	AgentReviewer = "agent"
	AgentOption   = "agent"
	ModelOption   = "model"
)

// Agent returns the name of the definition of the agent that a reviewer or arbiter runs, or "".
func (v *Reviewer) Agent() string {
	if v.Plugin != AgentReviewer {
		return ""
	}
	return v.With[AgentOption]
}

// Judges returns the reviewers of a step, and its arbiter.
func (s Step) Judges() []*Reviewer {
	var all []*Reviewer
	for i := range s.Reviewers() {
		all = append(all, &s.Reviewers()[i])
	}
	if loop, ok := s.Kind.(*AgentLoop); ok {
		all = append(all, &loop.Arbiter)
	}
	return all
}

// ReviewPrompt and ArbiterPrompt are the default prompts of the agents that review and arbitrate.
const (
	ReviewPrompt  = "review"
	ArbiterPrompt = "is-actionable"
)

func newReview() Kind { return &Review{} }

// Type implements Kind.
func (*Review) Type() string { return "review" }

func (v *Review) read(r *reader, at position) { v.Reviewers = r.reviewers(at) }

func (v *Review) words() []string { return []string{"review by " + reviewerNames(v.Reviewers)} }

func (v *Review) reviewers() []Reviewer { return v.Reviewers }

func (v *Review) agents() []Agent { return agentsOf(v.Reviewers) }

func (v *Review) plugins() []Use { return usesOf(v.Reviewers) }

func (*Review) describe(s *schema.Schema) { schema.Set(s, "reviewers", reviewersSchema()) }

// agentsOf returns the agents that reviewers are likely to run.
func agentsOf(reviewers []Reviewer) []Agent {
	var all []Agent
	for _, v := range reviewers {
		if v.Prompt != "" {
			all = append(all, Agent{Prompt: v.Prompt})
		}
	}
	return all
}

func usesOf(reviewers []Reviewer) []Use {
	var all []Use
	for _, v := range reviewers {
		all = append(all, Use{Kind: "reviewer", Name: v.Plugin})
	}
	return all
}

func (r *reader) reviewers(at position) []Reviewer {
	nodes := r.nodes(at.node, "reviewers")
	if len(nodes) == 0 {
		r.doc.Fail(at.node, fmt.Sprintf("the step %q has no reviewers", at.step), "reviewers: [agent]")
	}
	var all []Reviewer
	for _, n := range nodes {
		v := r.reviewer(n, at.step, "reviewer", ReviewPrompt)
		if slices.ContainsFunc(all, func(other Reviewer) bool { return other.Name == v.Name }) {
			r.doc.Fail(n, fmt.Sprintf("duplicate reviewer name %q", v.Name), "give one of them another name")
		}
		all = append(all, v)
	}
	return all
}

// reviewer reads a reviewer or an arbiter: the name of a plugin, or a map. prompt is the default prompt of
// an agent.
func (r *reader) reviewer(n yamldoc.Node, step, kind, prompt string) Reviewer {
	var v Reviewer
	plugin := n
	if n.IsMap() {
		r.doc.DecodeNode(n, &v)
		plugin = r.doc.Key(n, "plugin")
	} else {
		r.doc.DecodeNode(n, &v.Plugin)
	}
	name, given := r.doc.Key(n, "name"), r.doc.Key(n, "prompt")
	if !name.Set() {
		v.Name = v.Plugin
	}
	r.use(kind, v.Plugin, plugin)
	switch {
	case !plugin.Set():
		r.doc.Fail(n, fmt.Sprintf("a reviewer or arbiter of step %q has no plugin", step), "plugin: agent")
	case !pluginRE.MatchString(v.Plugin):
		r.doc.Fail(plugin, fmt.Sprintf("%q cannot be the name of a plugin", v.Plugin), "small letters, digits and -, the first a letter or digit")
	case !nameRE.MatchString(v.Name):
		r.doc.Fail(name, fmt.Sprintf("%q cannot be a name", v.Name), "letters, digits, - and _")
	}
	if v.Plugin == AgentReviewer && !given.Set() {
		v.Prompt = prompt
	}
	r.template(promptTemplate, step, v.Prompt, given)
	if at := r.doc.Key(r.doc.Key(n, "with"), "prompt"); at.Set() {
		r.doc.Fail(at, "prompt is not an option of a plugin", "write prompt next to with")
	}
	r.options(n, kind, v)
	return v
}

// reviewerSchema returns the schema of a reviewer or arbiter: the name of a plugin, or a map.
func reviewerSchema() *schema.Schema {
	s := schema.Of(Reviewer{})
	schema.Set(s, "plugin", nameSchema(pluginRE))
	schema.Set(s, "name", nameSchema(nameRE))
	s.Properties["with"].PropertyNames = &schema.Schema{Not: constant("prompt")}
	return &schema.Schema{AnyOf: []*schema.Schema{nameSchema(pluginRE), s}}
}

func reviewersSchema() *schema.Schema {
	s := listOf(reviewerSchema())
	s.UniqueItems = true
	return s
}
