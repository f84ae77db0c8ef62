// Package grimoires holds the workflows and prompts that coven ships, and reads
// those of users: it parses, validates, freezes and renders them.
//
// A grimoire is a YAML file with a list of steps. A prompt is a Markdown file
// with Go-template actions. Everything a file can get wrong is found when it
// is read, with its line and column; what a session uses is frozen into a Plan
// when the session begins, and later edits do not touch it.
package grimoires

import (
	"time"

	"github.com/coven-run/coven/internal/budget"
)

// Grimoire is a workflow of steps.
type Grimoire struct {
	Name        string
	Description string
	Timeout     time.Duration // of the whole run
	Budget      budget.Amount // of the whole run; zero: the configuration's
	Reserve     float64       // share of Budget reserved for review and landing, 0 to 0.9
	Steps       []Step
	Source      string // the file it came from, or "built in"
}

// Step is one item of a grimoire: exactly one of Agent, Script, Loop, Review,
// AgentLoop and Merge is set.
type Step struct {
	Name     string // unique in the grimoire, nested steps included
	When     string // template that renders to true or false; empty: always
	Timeout  time.Duration
	OnFail   OnFail
	Retries  int           // how many more times a failed step runs before OnFail applies
	Backoff  time.Duration // before the first retry; doubled for each further one
	Budget   budget.Amount // zero: no budget of its own
	ExitLoop bool          // on_success: exit_loop
	Output   string
	Agent    *Agent
	Script   *Script
	Loop     *Loop
	Review   *Review
	// AgentLoop is a loop that reviewers end.
	AgentLoop *AgentLoop
	Merge     *Merge
}

// OnFail says how a failed step affects the run.
type OnFail string

// The values of on_fail and on_max_iterations.
const (
	Block    OnFail = "block"    // the task is blocked: a person decides
	Continue OnFail = "continue" // continue with the next step
	Fail     OnFail = "fail"     // the task has failed
	Retry    OnFail = "retry"    // in files only: retries, then block
)

// Agent is a step that runs an agent.
type Agent struct {
	Prompt        string            // a prompt's name, or the prompt itself if it contains a newline
	Input         map[string]string // templates, rendered before the prompt
	Agent         string            // its definition; empty: build
	Model         string            // empty: the plan's
	Provider      string            // the plugin that runs it; empty: the plan's
	Env           map[string]string // templates
	Workdir       string            // where it runs, relative to the worktree; empty: the top
	ExpectChanges bool              // expect: changes; an agent that changes nothing fails
}

// Script is a step that runs a shell command, or the configured checks.
type Script struct {
	Command string            // template; its values are quoted for the shell
	Checks  bool              // run the plan's checks in order instead
	Env     map[string]string // templates
	Workdir string            // where it runs, relative to the worktree; empty: the top
}

// Loop is a step that repeats its steps.
type Loop struct {
	Steps           []Step
	MaxIterations   int
	OnMaxIterations OnFail // block, continue or fail
}

// Judge is a reviewer or an arbiter of a step.
type Judge struct {
	Name   string            // its name in the record; unique in the step
	Plugin string            // the plugin
	Prompt string            // as Agent.Prompt, rendered into its option "prompt"; empty: none
	With   map[string]string // its options
}

// Review is a step in which reviewers judge the change.
type Review struct {
	Reviewers []Judge
}

// AgentLoop is a step that repeats its steps, has the change reviewed, and has an
// agent fix the findings, until the reviewers pass the change or the arbiter decides
// that the findings are not worth another round.
type AgentLoop struct {
	Steps           []Step // of each round, before the review; may be none
	Reviewers       []Judge
	Arbiter         Judge
	Fix             string // prompt of the agent that fixes; its inputs are findings and reason
	MaxIterations   int
	OnMaxIterations OnFail // block, continue or fail
	Patience        int    // rounds without fewer findings that end it like MaxIterations; 0: any number
}

// Merge is a step that lands the task's branch on its target.
type Merge struct {
	RequireReview bool
	Strategy      string   // squash, merge or rebase
	Message       string   // template of the commit message; empty: coven's own
	Checks        []string // empty: the plan's
	Resolve       bool     // on_conflict: agent; an agent resolves conflicts with the target
}
