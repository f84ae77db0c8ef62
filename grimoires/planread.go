package grimoires

import (
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/yamldoc"
)

// planName is the name of a frozen plan in errors.
const planName = "plan.yaml"

// planKeys is the format of a plan that is read.
type planKeys struct {
	V        int                   `yaml:"v"`
	Source   string                `yaml:"source"`
	Model    string                `yaml:"model"`
	Provider string                `yaml:"provider"`
	Target   string                `yaml:"target"`
	Checks   []yamlString          `yaml:"checks"`
	Raw      []yamlString          `yaml:"raw"`
	Task     taskFile              `yaml:"task"`
	Attempt  string                `yaml:"attempt"`
	Grimoire yamldoc.Node          `yaml:"grimoire"`
	Prompts  map[string]promptFile `yaml:"prompts"`
}

// ReadPlan decodes the output of Marshal. The error is a yamldoc.Errors or a
// *VersionError.
func ReadPlan(data []byte) (*Plan, error) {
	doc, err := yamldoc.Parse(planName, data)
	if err != nil {
		return nil, err
	}
	if v := versionOf(data); v > PlanVersion {
		return nil, &VersionError{v}
	}
	var keys planKeys
	doc.Decode(&keys)
	t := keys.Task
	r := &reader{doc: doc}
	g := r.grimoire(keys.Grimoire)
	g.Source = keys.Source
	p := &Plan{
		V: keys.V, Grimoire: g, Prompts: map[string]Prompt{}, Checks: texts(keys.Checks), Raw: texts(keys.Raw), Model: keys.Model,
		Provider: keys.Provider, Target: keys.Target, Attempt: keys.Attempt,
		Task: Task{
			ID: string(t.ID), Title: string(t.Title), Description: string(t.Description), Acceptance: string(t.Acceptance),
			Design: string(t.Design), Notes: string(t.Notes), Type: string(t.Type), Priority: t.Priority,
			Labels: texts(t.Labels), Parent: string(t.Parent), ExternalRef: string(t.ExternalRef),
		},
	}
	for name, prompt := range keys.Prompts {
		p.Prompts[name] = Prompt{Name: name, Text: string(prompt.Text), Source: string(prompt.Source)}
	}
	r.requirePrompts(p)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// versionOf returns the version of a plan. It is read before the rest: a newer plan
// may have unknown keys.
func versionOf(data []byte) int {
	var head struct {
		V int `yaml:"v"`
	}
	_ = yaml.Unmarshal(data, &head) // reading the rest reports its errors
	return head.V
}

// requirePrompts records prompts that steps name and the plan lacks.
func (r *reader) requirePrompts(p *Plan) {
	for _, t := range r.found {
		if t.kind != promptTemplate || isInline(t.at.Value) {
			continue
		}
		if _, ok := p.prompt(t.at.Value); !ok {
			r.doc.Fail(t.at, "the plan has no prompt \""+t.at.Value+"\"", "")
		}
	}
}

// texts returns the original list; an empty one is nil.
func texts(all []yamlString) []string {
	var out []string
	for _, text := range all {
		out = append(out, string(text))
	}
	return out
}
