// Package grimoires holds the workflows and prompts that coven ships, and reads
// those of users: it parses, validates, freezes and renders them.
//
// A grimoire is a YAML file with a list of steps. A prompt is a Markdown file
// with Go-template actions. Everything a file can get wrong is found when it
// is read, with its line and column; what a session uses is frozen into a Plan
// when the session begins, and later edits do not touch it.
//
// Each kind of step has a file of its own and one line in kinds: a struct whose tags
// define its YAML keys, for reading, for writing plans and for the JSON Schema.
package grimoires

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// Grimoire is a workflow of steps.
type Grimoire struct {
	Name        string        `yaml:"name" need:"true" about:"same as the file"`
	Description string        `yaml:"description,omitempty" about:"one line for people"`
	Timeout     time.Duration `yaml:"timeout" about:"of the whole run; 2h"`
	Budget      RunBudget     `yaml:"budget,omitempty" about:"of the whole run"`
	Steps       []Step        `yaml:"steps" need:"true" later:"true" about:"the steps, in order"`
	Source      string        `yaml:"-"` // the file it came from, or "built in"
}

// RunBudget is the budget of a whole run.
type RunBudget struct {
	budget.Amount `yaml:",inline"` // zero: the configuration's
	Reserve       float64          `yaml:"reserve" about:"share, 0 to 0.9, reserved for review and landing; 0.1"`
}

// IsZero reports whether the grimoire sets no budget.
func (b RunBudget) IsZero() bool { return b.Amount == budget.Amount{} }

// Step is one item of a grimoire.
type Step struct {
	Name     string        `yaml:"name" need:"true" about:"unique in the grimoire, nested steps included: letters, digits, - and _"`
	When     string        `yaml:"when,omitempty" about:"template that evaluates to true or false; false skips the step"`
	Timeout  time.Duration `yaml:"timeout,omitempty" about:"agent and review 15m, script 5m; others: that of the run"`
	OnFail   OnFail        `yaml:"on_fail" oneof:"block|continue|fail|retry" about:"block: a person decides; continue: run the next step; fail: the task fails; retry: run the step again, then block"`
	Retries  int           `yaml:"retries,omitempty" about:"1 to 10: how many more times a failed step runs before on_fail applies"`
	Backoff  time.Duration `yaml:"backoff,omitempty" about:"before the first retry; doubled for each further one"`
	Budget   budget.Amount `yaml:"budget,omitempty" about:"of the step, including retries and inner steps"`
	ExitLoop bool          `yaml:"on_success,omitempty" oneof:"exit_loop" true:"exit_loop" about:"leave the innermost loop"`
	Output   string        `yaml:"output,omitempty" about:"another name for the result of the step: {{.NAME}}"`
	Kind     Kind          `yaml:"-"` // what the step does
}

// EncodeYAML implements yamldoc.Encoder.
func (s Step) EncodeYAML() *yaml.Node {
	return yamldoc.Mapping(stepHead{s.Name, s.Kind.Type()}, s, s.Kind)
}

// OnFail says how a failed step affects the run.
type OnFail string

// The values of on_fail and on_max_iterations.
const (
	Block    OnFail = "block"    // the task is blocked: a person decides
	Continue OnFail = "continue" // continue with the next step
	Fail     OnFail = "fail"     // the task has failed

	retryOnFail OnFail = "retry" // in files only: retries, then block
	exitOnMax   OnFail = "exit"  // in files only: fail
)
