package grimoires

import (
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/mcp/servers"
)

// planName is the name of a plan in errors.
const planName = "plan.yaml"

// planComment is the header of plan.yaml.
const planComment = "# The plan of a session, frozen when it began. Edits to grimoires, prompts and\n# configuration do not reach it.\n"

// planFile is the format of plan.yaml.
type planFile struct {
	V      int    `yaml:"v"`
	Source string `yaml:"source"`
	Plan   Plan   `yaml:",inline"`
}

// Marshal encodes the plan for plan.yaml. It replaces invalid UTF-8.
func (p *Plan) Marshal() ([]byte, error) {
	data, err := yamldoc.Marshal(planFile{V: PlanVersion, Source: p.Grimoire.Source, Plan: *p})
	return append([]byte(planComment), data...), err
}

// ReadPlan decodes the output of Marshal. The error is a yamldoc.Errors or a *VersionError.
func ReadPlan(data []byte) (*Plan, error) {
	doc, err := yamldoc.Parse(planName, data)
	if err != nil {
		return nil, err
	}
	if v := versionOf(data); v != PlanVersion {
		return nil, &VersionError{v}
	}
	var file planFile
	doc.Decode(&file)
	r := &reader{doc: doc}
	p := &file.Plan
	p.Grimoire = r.grimoire(doc.Key(doc.Root(), "grimoire"))
	p.Grimoire.Source = file.Source
	if len(p.Checks) == 0 {
		p.Checks = nil
	}
	if p.Prompts == nil {
		p.Prompts = map[string]Prompt{}
	}
	for name, prompt := range p.Prompts {
		prompt.Name = name
		p.Prompts[name] = prompt
	}
	if slices.ContainsFunc(p.MCP, func(s servers.Server) bool { return s.Name == "" }) {
		doc.Fail(doc.Key(doc.Root(), "mcp"), "an MCP server has no name", "")
	}
	r.requirePrompts(p)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// ReadTask decodes the task of a plan of any version. A new session can use the task of a session that
// cannot continue.
func ReadTask(data []byte) (Task, error) {
	if _, err := yamldoc.Parse(planName, data); err != nil {
		return Task{}, err
	}
	var plan struct {
		Task Task `yaml:"task"`
	}
	err := yaml.Unmarshal(data, &plan)
	if err == nil && plan.Task.Title == "" {
		err = errors.New("there is no title")
	}
	if err != nil {
		return Task{}, fmt.Errorf("read the task of the plan: %w", err)
	}
	return plan.Task, nil
}

// versionOf returns the version of a plan, or 0 if it has none. It must be called before decoding the rest,
// because a plan of another version may contain unknown keys.
func versionOf(data []byte) int {
	var head struct {
		V int `yaml:"v"`
	}
	if yaml.Unmarshal(data, &head) != nil {
		return PlanVersion // decoding the rest reports the errors
	}
	return head.V
}

// requirePrompts reports prompts that steps name but the plan does not contain.
func (r *reader) requirePrompts(p *Plan) {
	for _, t := range r.found {
		if t.kind != promptTemplate || isInline(t.text) {
			continue
		}
		if _, ok := p.prompt(t.text); !ok {
			r.doc.Fail(t.at, "the plan has no prompt \""+t.text+"\"", "")
		}
	}
}
