package grimoires

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// Plan contains everything that a session needs from grimoires, prompts, configuration and tracker. It is
// frozen when the session starts, so that later edits have no effect.
type Plan struct {
	Model    string                     `yaml:"model"`
	Provider string                     `yaml:"provider"`
	Target   string                     `yaml:"target"`             // full ref: refs/heads/main
	Checks   []check.Check              `yaml:"checks"`             // commands that must pass before the change lands, in order
	Worktree Worktree                   `yaml:"worktree,omitempty"` // commands for the worktree's setup and teardown
	Raw      []string                   `yaml:"raw,omitempty"`      // places where a command uses a value without quoting
	Task     Task                       `yaml:"task"`
	Attempt  string                     `yaml:"attempt,omitempty"` // how the previous session of the task ended, empty if there was none
	Grimoire *Grimoire                  `yaml:"grimoire" later:"true"`
	Prompts  map[string]Prompt          `yaml:"prompts"`          // all prompts that the steps use, including included ones
	Agents   map[string]AgentDefinition `yaml:"agents,omitempty"` // agents that the steps and agents can start
	Tools    map[string]CommandTool     `yaml:"tools,omitempty"`  // project tools that some of the agents name
	Tree     *Tree                      `yaml:"tree,omitempty"`   // of the agents; nil if each agent works alone
	Spawn    *SpawnRequest              `yaml:"spawn,omitempty"`  // the subagent that a person starts directly; may be nil
	Chat     *Chat                      `yaml:"chat,omitempty"`   // nil unless the session is a chat
	Rules    []permission.Rule          `yaml:"rules,omitempty"`  // the user's rules for all agents
	MCP      []servers.Server           `yaml:"mcp,omitempty"`    // for the agents
	Skills   map[string]Skill           `yaml:"skills,omitempty"` // of the agents
	Given    map[string]Given           `yaml:"given,omitempty"`  // results of steps that do not run, by their names
	Unfit    []string                   `yaml:"-"`                // why prompts of the person are not used; for messages
}

// AgentDefinition is the part of a plan that contains the definition of an agent. See package agent. The
// model and provider of a step's agent are in the step.
type AgentDefinition struct {
	Source      string            `yaml:"source"` // the definition's file
	Description string            `yaml:"description,omitempty"`
	Mode        string            `yaml:"mode,omitempty"`      // primary or subagent; empty for both
	Model       string            `yaml:"model,omitempty"`     // for the agent as a subagent; empty for the plan's model
	Provider    string            `yaml:"provider,omitempty"`  // for the agent as a subagent; empty for the plan's provider
	Timeout     time.Duration     `yaml:"timeout,omitempty"`   // for the agent as a subagent; 0 means no limit
	MaxTurns    int               `yaml:"max_turns,omitempty"` // 0 means no limit
	Tools       []string          `yaml:"tools,omitempty"`     // empty for all that the permissions allow
	MCP         []string          `yaml:"mcp,omitempty"`       // servers, empty for all of the plan
	Skills      []string          `yaml:"skills,omitempty"`
	Prompt      string            `yaml:"prompt"`
	Permissions []permission.Rule `yaml:"permissions,omitempty"` // empty for the permissions that coven grants
	Asks        []permission.Name `yaml:"requires_approval,omitempty"`
	// ApprovalTimeout is the time to wait for a person's approval, or 0 for the default. ApproveOnTimeout
	// means that after this time, reversible actions are approved.
	ApprovalTimeout  time.Duration `yaml:"approval_timeout,omitempty"`
	ApproveOnTimeout bool          `yaml:"approve_on_timeout,omitempty"`
	// Reflection configures the evaluation of the agent's work as a subagent. It is nil if there is none.
	Reflection *Reflection `yaml:"reflection,omitempty"`
}

// Tree divides the tools between agents, for a root agent that only starts the others. See package
// agenttree.
type Tree struct {
	Root     string   `yaml:"root"`     // the agent that starts the others
	Rounds   int      `yaml:"rounds"`   // maximum number of agents that it starts in one run
	Branches []Branch `yaml:"branches"` // in the order in which they get a tool
}

// Branch is an agent of a tree and the selection of its tools.
type Branch struct {
	Agent    string   `yaml:"agent"`
	Prefixes []string `yaml:"tool_prefixes,omitempty"`
	MCP      []string `yaml:"mcp,omitempty"` // servers
}

// Has reports whether the root starts the agent with this name.
func (t *Tree) Has(name string) bool {
	return t != nil && slices.ContainsFunc(t.Branches, func(b Branch) bool { return b.Agent == name })
}

// Skill is a skill of agents. See package skill.
type Skill struct {
	Description string   `yaml:"description"`
	MCP         []string `yaml:"mcp,omitempty"` // servers that only agents with the skill use
	Body        string   `yaml:"body"`
}

// Reflection configures the evaluation of an agent's work.
type Reflection struct {
	MaxRetries int    `yaml:"max_retries"`
	Criteria   string `yaml:"criteria,omitempty"` // empty for general criteria
}

// SpawnRequest is a request for a subagent. See package spawn.
type SpawnRequest struct {
	Agent       string    `yaml:"agent"`
	Task        string    `yaml:"task"`
	Permissions *[]string `yaml:"permissions,omitempty"`
	Model       string    `yaml:"model,omitempty"`
	TaskID      string    `yaml:"task_id,omitempty"`
}

// AgentSteps returns the agent steps, whose agent can be chosen.
func (g *Grimoire) AgentSteps() []*Agent {
	var all []*Agent
	for s := range g.All() {
		if a, ok := s.Kind.(*Agent); ok {
			all = append(all, a)
		}
	}
	return all
}

// Worktree contains the shell commands that prepare a task's worktree, and those that run before it is
// removed.
type Worktree struct {
	Setup           []string      `yaml:"setup,omitempty"`
	SetupTimeout    time.Duration `yaml:"setup_timeout,omitempty"` // of all commands together
	Teardown        []string      `yaml:"teardown,omitempty"`
	TeardownTimeout time.Duration `yaml:"teardown_timeout,omitempty"` // of all commands together
}

// PlanVersion is the version of plans: of their format, and of the rules for running their sessions. Only
// this version is supported.
const PlanVersion = 3

// VersionError means that this coven does not support the version of a plan.
type VersionError struct{ V int } // 0 if the plan has no version

// Newer reports whether the plan was written by a newer coven.
func (e *VersionError) Newer() bool { return e.V > PlanVersion }

func (e *VersionError) Error() string {
	switch {
	case e.Newer():
		return fmt.Sprintf("plan version %d is newer than %d, the newest that this coven supports; resume the session with a newer coven", e.V, PlanVersion)
	case e.V == 0:
		return fmt.Sprintf("the plan has no version; the oldest that this coven supports is %d", PlanVersion)
	}
	return fmt.Sprintf("plan version %d is older than %d, the oldest that this coven supports", e.V, PlanVersion)
}

// Proves reports whether a command is a check, which must pass on the exact tree that lands.
func (p *Plan) Proves(command string) bool {
	for s := range p.Grimoire.All() {
		if m, ok := s.Kind.(*Merge); ok && slices.Contains(check.Commands(p.ChecksOf(m)), command) {
			return true
		}
	}
	return false
}

// ChecksOf returns the checks of a merge step. The plan's checks are the default.
func (p *Plan) ChecksOf(m *Merge) []check.Check {
	if len(m.Checks) == 0 {
		return p.Checks
	}
	return m.Checks
}

// Freeze returns a plan of a grimoire with the current prompts. The caller sets Model, Provider, Target,
// Worktree, Task and Attempt.
func (l *Library) Freeze(g *Grimoire, checks []check.Check) (*Plan, error) {
	p, err := l.promptsOf(g)
	if err != nil {
		return nil, err
	}
	all := p.elsewhere
	for s := range g.All() {
		for _, a := range s.prompted() {
			for _, f := range p.faults[use{s.Name, a.Prompt}] {
				all = append(all, yamldoc.Error{File: g.Source, Line: 1, Column: 1, Msg: f.msg, Hint: f.hint})
			}
		}
	}
	if len(all) > 0 {
		return nil, all
	}
	raw, err := rawUses(g)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Grimoire: g, Prompts: p.byName, Checks: checks, Raw: raw}
	for _, e := range p.unfit {
		plan.Unfit = append(plan.Unfit, e.Error())
	}
	return plan, nil
}

// rawUses returns the places where commands use values without quoting.
func rawUses(g *Grimoire) ([]string, error) {
	var places []string
	for s := range g.All() {
		script, ok := s.Kind.(*Script)
		if !ok || script.Command == "" {
			continue
		}
		uses, err := tmpl.CheckCommand("step "+s.Name, script.Command)
		if err != nil {
			return nil, fmt.Errorf("check the commands: %w", err)
		}
		for _, r := range uses.Raw {
			places = append(places, fmt.Sprintf("step %s: line %d, column %d of its command", s.Name, r.Line, r.Column))
		}
	}
	return places, nil
}

// RenderPrompt renders a prompt of the plan with the data of a step. A text with a newline is the prompt
// itself.
func (p *Plan) RenderPrompt(nameOrInline string, data map[string]any) (string, error) {
	file, text := "prompt", nameOrInline
	if !isInline(nameOrInline) {
		found, ok := p.prompt(nameOrInline)
		if !ok {
			return "", &UnknownError{Kind: "prompt", Name: nameOrInline, Hint: "it is not part of the session's plan"}
		}
		file, text = found.file(), found.Text
	}
	lookup := func(name string) (string, string, bool) {
		found, ok := p.prompt(name)
		return found.file(), found.Text, ok
	}
	inputs, _ := data["input"].(map[string]any)
	return tmpl.Prompt(file, text, data, lookup, inputs)
}

// prompt finds a prompt of the plan. The name may end with .md.
func (p *Plan) prompt(name string) (Prompt, bool) {
	found, ok := p.Prompts[strings.TrimSuffix(name, ".md")]
	return found, ok
}
