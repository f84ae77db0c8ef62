package grimoires

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/budget"
)

// planFile is the format of plan.yaml.
type planFile struct {
	V        int                   `yaml:"v,omitempty"`
	Source   yamlString            `yaml:"source"`
	Model    yamlString            `yaml:"model"`
	Provider yamlString            `yaml:"provider"`
	Target   yamlString            `yaml:"target"`
	Checks   []yamlString          `yaml:"checks"`
	Raw      []yamlString          `yaml:"raw,omitempty"`
	Task     taskFile              `yaml:"task"`
	Attempt  yamlString            `yaml:"attempt,omitempty"`
	Grimoire grimoireFile          `yaml:"grimoire"`
	Prompts  map[string]promptFile `yaml:"prompts"`
}

type promptFile struct {
	Source yamlString `yaml:"source"`
	Text   yamlString `yaml:"text"`
}

type taskFile struct {
	ID          yamlString   `yaml:"id"`
	Title       yamlString   `yaml:"title"`
	Description yamlString   `yaml:"description,omitempty"`
	Acceptance  yamlString   `yaml:"acceptance,omitempty"`
	Design      yamlString   `yaml:"design,omitempty"`
	Notes       yamlString   `yaml:"notes,omitempty"`
	Type        yamlString   `yaml:"type,omitempty"`
	Priority    int          `yaml:"priority"`
	Labels      []yamlString `yaml:"labels,omitempty"`
	Parent      yamlString   `yaml:"parent,omitempty"`
	ExternalRef yamlString   `yaml:"external_ref,omitempty"`
}

type grimoireFile struct {
	Name        yamlString `yaml:"name"`
	Description yamlString `yaml:"description,omitempty"`
	Timeout     string     `yaml:"timeout"`
	Budget      budgetFile `yaml:"budget,omitempty"`
	Steps       []stepFile `yaml:"steps"`
}

type stepFile struct {
	Name            yamlString            `yaml:"name"`
	Type            yamlString            `yaml:"type"`
	When            yamlString            `yaml:"when,omitempty"`
	Timeout         string                `yaml:"timeout,omitempty"`
	OnFail          OnFail                `yaml:"on_fail"`
	Retries         int                   `yaml:"retries,omitempty"`
	Backoff         string                `yaml:"backoff,omitempty"`
	Budget          budgetFile            `yaml:"budget,omitempty"`
	OnSuccess       string                `yaml:"on_success,omitempty"`
	Output          yamlString            `yaml:"output,omitempty"`
	Prompt          yamlString            `yaml:"prompt,omitempty"`
	Input           map[string]yamlString `yaml:"input,omitempty"`
	Agent           yamlString            `yaml:"agent,omitempty"`
	Model           yamlString            `yaml:"model,omitempty"`
	Provider        yamlString            `yaml:"provider,omitempty"`
	Expect          string                `yaml:"expect,omitempty"`
	Command         yamlString            `yaml:"command,omitempty"`
	Checks          any                   `yaml:"checks,omitempty"` // true, or a list
	Env             map[string]yamlString `yaml:"env,omitempty"`
	Workdir         yamlString            `yaml:"workdir,omitempty"`
	MaxIterations   int                   `yaml:"max_iterations,omitempty"`
	OnMaxIterations OnFail                `yaml:"on_max_iterations,omitempty"`
	Steps           []stepFile            `yaml:"steps,omitempty"`
	RequireReview   *bool                 `yaml:"require_review,omitempty"`
	Strategy        yamlString            `yaml:"strategy,omitempty"`
	Message         yamlString            `yaml:"message,omitempty"`
	OnConflict      string                `yaml:"on_conflict,omitempty"`
	Reviewers       []judgeFile           `yaml:"reviewers,omitempty"`
	Arbiter         *judgeFile            `yaml:"arbiter,omitempty"`
	Fix             yamlString            `yaml:"fix,omitempty"`
	Patience        int                   `yaml:"patience,omitempty"`
}

type judgeFile struct {
	Name   yamlString            `yaml:"name"`
	Plugin yamlString            `yaml:"plugin"`
	Prompt yamlString            `yaml:"prompt,omitempty"`
	With   map[string]yamlString `yaml:"with,omitempty"`
}

func (j Judge) file() judgeFile {
	return judgeFile{Name: yamlString(j.Name), Plugin: yamlString(j.Plugin), Prompt: yamlString(j.Prompt), With: dictionary(j.With)}
}

func judgeFiles(judges []Judge) []judgeFile {
	var files []judgeFile
	for _, j := range judges {
		files = append(files, j.file())
	}
	return files
}

// planComment is the header of plan.yaml.
const planComment = "# The plan of a session, frozen when it began. Edits to grimoires, prompts and\n# configuration do not reach it.\n"

// Marshal encodes the plan for plan.yaml. Invalid UTF-8 is replaced.
func (p *Plan) Marshal() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(planComment)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(p.file()); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return b.Bytes(), nil
}

func (p *Plan) file() planFile {
	t := p.Task
	file := planFile{
		V:      p.V,
		Source: yamlString(p.Grimoire.Source), Model: yamlString(p.Model), Provider: yamlString(p.Provider), Target: yamlString(p.Target),
		Checks: list(p.Checks), Raw: list(p.Raw), Attempt: yamlString(p.Attempt),
		Task: taskFile{
			ID: yamlString(t.ID), Title: yamlString(t.Title), Description: yamlString(t.Description), Acceptance: yamlString(t.Acceptance),
			Design: yamlString(t.Design), Notes: yamlString(t.Notes), Type: yamlString(t.Type), Priority: t.Priority,
			Labels: list(t.Labels), Parent: yamlString(t.Parent), ExternalRef: yamlString(t.ExternalRef),
		},
		Grimoire: p.Grimoire.file(), Prompts: map[string]promptFile{},
	}
	for name, prompt := range p.Prompts {
		file.Prompts[name] = promptFile{yamlString(prompt.Source), yamlString(prompt.Text)}
	}
	return file
}

func list(texts []string) []yamlString {
	all := make([]yamlString, len(texts))
	for i, text := range texts {
		all[i] = yamlString(text)
	}
	return all
}

func dictionary(texts map[string]string) map[string]yamlString {
	all := make(map[string]yamlString, len(texts))
	for name, text := range texts {
		all[name] = yamlString(text)
	}
	return all
}

func (g *Grimoire) file() grimoireFile {
	return grimoireFile{
		Name: yamlString(g.Name), Description: yamlString(g.Description), Timeout: duration(g.Timeout),
		Budget: g.budgetFile(), Steps: stepFiles(g.Steps),
	}
}

// budgetFile is a budget in a file.
type budgetFile struct {
	USD     float64  `yaml:"usd,omitempty"`
	Tokens  int64    `yaml:"tokens,omitempty"`
	Turns   int      `yaml:"turns,omitempty"`
	Wall    string   `yaml:"wall,omitempty"`
	Reserve *float64 `yaml:"reserve,omitempty"`
}

func amountFile(a budget.Amount) budgetFile {
	return budgetFile{USD: a.USD, Tokens: a.Tokens, Turns: a.Turns, Wall: duration(a.Wall)}
}

func (g *Grimoire) budgetFile() budgetFile {
	file := amountFile(g.Budget)
	if file != (budgetFile{}) {
		file.Reserve = &g.Reserve
	}
	return file
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
		Name: yamlString(s.Name), When: yamlString(s.When), Timeout: duration(s.Timeout),
		OnFail: s.OnFail, Retries: s.Retries, Backoff: duration(s.Backoff), Budget: amountFile(s.Budget), Output: yamlString(s.Output),
	}
	if s.ExitLoop {
		f.OnSuccess = exitLoop
	}
	switch {
	case s.Agent != nil:
		f.Type, f.Prompt, f.Model = agentType, yamlString(s.Agent.Prompt), yamlString(s.Agent.Model)
		f.Agent, f.Provider, f.Workdir = yamlString(s.Agent.Agent), yamlString(s.Agent.Provider), yamlString(s.Agent.Workdir)
		f.Input, f.Env = dictionary(s.Agent.Input), dictionary(s.Agent.Env)
		if s.Agent.ExpectChanges {
			f.Expect = "changes"
		}
	case s.Script != nil:
		f.Type, f.Command, f.Env = scriptType, yamlString(s.Script.Command), dictionary(s.Script.Env)
		f.Workdir = yamlString(s.Script.Workdir)
		if s.Script.Checks {
			f.Checks = true
		}
	case s.Loop != nil:
		f.Type, f.Steps = loopType, stepFiles(s.Loop.Steps)
		f.MaxIterations, f.OnMaxIterations = s.Loop.MaxIterations, s.Loop.OnMaxIterations
	case s.Review != nil:
		f.Type, f.Reviewers = reviewType, judgeFiles(s.Review.Reviewers)
	case s.AgentLoop != nil:
		s.AgentLoop.file(&f)
	case s.Merge != nil:
		f.Type, f.RequireReview = mergeType, &s.Merge.RequireReview
		f.Strategy, f.Message = yamlString(s.Merge.Strategy), yamlString(s.Merge.Message)
		if s.Merge.Resolve {
			f.OnConflict = resolveByAgent
		}
		if len(s.Merge.Checks) > 0 {
			f.Checks = list(s.Merge.Checks)
		}
	}
	return f
}

func (l *AgentLoop) file(f *stepFile) {
	arbiter := l.Arbiter.file()
	f.Type, f.Steps, f.Reviewers, f.Arbiter, f.Fix = agentLoopType, stepFiles(l.Steps), judgeFiles(l.Reviewers), &arbiter, yamlString(l.Fix)
	f.MaxIterations, f.OnMaxIterations, f.Patience = l.MaxIterations, l.OnMaxIterations, l.Patience
}

// duration formats 15m0s as 15m, and 0 as an empty text.
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
