package grimoires

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// planFile is a plan as plan.yaml has it.
type planFile struct {
	Source   string                `yaml:"source"`
	Model    string                `yaml:"model"`
	Provider string                `yaml:"provider"`
	Target   string                `yaml:"target"`
	Checks   []string              `yaml:"checks"`
	Raw      []string              `yaml:"raw,omitempty"`
	Task     taskFile              `yaml:"task"`
	Attempt  string                `yaml:"attempt,omitempty"`
	Grimoire grimoireFile          `yaml:"grimoire"`
	Prompts  map[string]promptFile `yaml:"prompts"`
}

type promptFile struct {
	Source string `yaml:"source"`
	Text   string `yaml:"text"`
}

type taskFile struct {
	ID          string   `yaml:"id"`
	Title       string   `yaml:"title"`
	Description string   `yaml:"description,omitempty"`
	Acceptance  string   `yaml:"acceptance,omitempty"`
	Design      string   `yaml:"design,omitempty"`
	Notes       string   `yaml:"notes,omitempty"`
	Type        string   `yaml:"type,omitempty"`
	Priority    int      `yaml:"priority"`
	Labels      []string `yaml:"labels,omitempty"`
	Parent      string   `yaml:"parent,omitempty"`
	ExternalRef string   `yaml:"external_ref,omitempty"`
}

type grimoireFile struct {
	Name        string     `yaml:"name"`
	Description string     `yaml:"description,omitempty"`
	Timeout     string     `yaml:"timeout"`
	Steps       []stepFile `yaml:"steps"`
}

type stepFile struct {
	Name            string            `yaml:"name"`
	Type            string            `yaml:"type"`
	When            string            `yaml:"when,omitempty"`
	Timeout         string            `yaml:"timeout,omitempty"`
	OnFail          OnFail            `yaml:"on_fail"`
	Retries         int               `yaml:"retries,omitempty"`
	OnSuccess       string            `yaml:"on_success,omitempty"`
	Output          string            `yaml:"output,omitempty"`
	Prompt          string            `yaml:"prompt,omitempty"`
	Input           map[string]string `yaml:"input,omitempty"`
	Model           string            `yaml:"model,omitempty"`
	Expect          string            `yaml:"expect,omitempty"`
	Command         string            `yaml:"command,omitempty"`
	Checks          any               `yaml:"checks,omitempty"` // true, or a list
	Env             map[string]string `yaml:"env,omitempty"`
	MaxIterations   int               `yaml:"max_iterations,omitempty"`
	OnMaxIterations OnFail            `yaml:"on_max_iterations,omitempty"`
	Steps           []stepFile        `yaml:"steps,omitempty"`
	RequireReview   *bool             `yaml:"require_review,omitempty"`
	Strategy        string            `yaml:"strategy,omitempty"`
	Message         string            `yaml:"message,omitempty"`
}

// planComment is the head of plan.yaml.
const planComment = "# The plan of a session, frozen when it began. Edits to grimoires, prompts and\n# configuration do not reach it.\n"

// Marshal returns the plan as plan.yaml has it. Bytes that are not UTF-8 are
// replaced.
func (p *Plan) Marshal() ([]byte, error) {
	file := planFile{
		Source: p.Grimoire.Source, Model: p.Model, Provider: p.Provider, Target: p.Target,
		Checks: p.Checks, Raw: p.Raw, Task: taskFile(p.Task), Attempt: p.Attempt,
		Grimoire: p.Grimoire.file(), Prompts: map[string]promptFile{},
	}
	for name, prompt := range p.Prompts {
		file.Prompts[name] = promptFile{prompt.Source, prompt.Text}
	}
	var n yaml.Node
	if err := n.Encode(file); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	if err := style(&n); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(planComment)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&n); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return b.Bytes(), nil
}

func (g *Grimoire) file() grimoireFile {
	return grimoireFile{Name: g.Name, Description: g.Description, Timeout: duration(g.Timeout), Steps: stepFiles(g.Steps)}
}

func stepFiles(steps []Step) []stepFile {
	files := make([]stepFile, len(steps))
	for i, s := range steps {
		files[i] = s.file()
	}
	return files
}

func (s Step) file() stepFile {
	f := stepFile{
		Name: s.Name, When: s.When, Timeout: duration(s.Timeout), OnFail: s.OnFail, Retries: s.Retries, Output: s.Output,
	}
	if s.ExitLoop {
		f.OnSuccess = exitLoop
	}
	switch {
	case s.Agent != nil:
		f.Type, f.Prompt, f.Input, f.Model = agentType, s.Agent.Prompt, s.Agent.Input, s.Agent.Model
		if s.Agent.ExpectChanges {
			f.Expect = "changes"
		}
	case s.Script != nil:
		f.Type, f.Command, f.Env = scriptType, s.Script.Command, s.Script.Env
		if s.Script.Checks {
			f.Checks = true
		}
	case s.Loop != nil:
		f.Type, f.Steps = loopType, stepFiles(s.Loop.Steps)
		f.MaxIterations, f.OnMaxIterations = s.Loop.MaxIterations, s.Loop.OnMaxIterations
	case s.Merge != nil:
		f.Type, f.RequireReview, f.Strategy, f.Message = mergeType, &s.Merge.RequireReview, s.Merge.Strategy, s.Merge.Message
		if len(s.Merge.Checks) > 0 {
			f.Checks = s.Merge.Checks
		}
	}
	return f
}

// duration writes 15m0s as 15m, and no duration as nothing.
func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
