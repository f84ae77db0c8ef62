// Package grimoires contains the workflows and prompts that coven ships, and reads those of users: it
// parses, validates, freezes and renders them.
//
// A grimoire is a YAML file with a list of steps. A prompt is a Markdown file with Go-template actions. All
// errors in a file are found when it is read, with their lines and columns. When a session begins,
// everything that it uses is frozen into a Plan, so that later edits have no effect on it.
//
// Each kind of step has its own file and one line in kinds. It is a struct whose tags define its YAML keys,
// for reading, for writing plans, and for the JSON Schema.
package grimoires

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Grimoire is a workflow of steps.
type Grimoire struct {
	Name        string        `yaml:"name" need:"true" about:"same as the file"`
	Description string        `yaml:"description,omitempty" about:"one line for people"`
	Timeout     time.Duration `yaml:"timeout" about:"of the whole run; 2h"`
	Budget      RunBudget     `yaml:"budget,omitempty" about:"of the whole run"`
	Steps       []Step        `yaml:"steps" need:"true" later:"true" about:"the steps, in order"`
	Source      string        `yaml:"-"` // the file, or "built in"
}

// RunBudget is the budget of a whole run.
type RunBudget struct {
	budget.Amount `yaml:",inline"` // if zero, the configuration applies
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
	Kind     Kind          `yaml:"-"` // the work of the step
}

// EncodeYAML implements yamldoc.Encoder.
func (s Step) EncodeYAML() *yaml.Node {
	return yamldoc.Mapping(stepHead{s.Name, s.Kind.Type()}, s, s.Kind)
}

// OnFail is the effect of a failed step on the run.
type OnFail string

// The values of on_fail and on_max_iterations.
const (
	Block    OnFail = "block"    // the task is blocked, and a person decides
	Continue OnFail = "continue" // continue with the next step
	Fail     OnFail = "fail"     // the task has failed

	retryOnFail OnFail = "retry" // only in files: retries, then block
	exitOnMax   OnFail = "exit"  // only in files: fail
)
