package grimoires

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tmpl"
	"github.com/coven-run/coven/internal/yamldoc"
)

// Plan holds everything a session needs of grimoires, prompts, configuration and
// tracker, frozen when the session starts. Later edits do not affect it.
type Plan struct {
	Grimoire *Grimoire
	Prompts  map[string]Prompt          // all that the steps use, included ones too
	Agents   map[string]AgentDefinition // that its steps and agents can start
	Tools    map[string]CommandTool     // of the project, that some of its agents name
	Tree     *Tree                      // of its agents; nil: each agent works alone
	Spawn    *SpawnRequest              // what a person starts directly; nil: nothing
	Chat     *Chat                      // the session is a chat; nil: it is not
	Rules    []permission.Rule          // of the user, for all agents
	MCP      []servers.Server           // for its agents
	Skills   map[string]Skill           // of its agents
	Checks   []string                   // commands that must pass before the change lands, in order
	Worktree Worktree                   // its life cycle
	Raw      []string                   // places where a command takes a value unquoted
	Model    string
	Provider string
	Target   string // full ref: refs/heads/main
	Task     Task
	Attempt  string // how the prior session of the task ended; empty: there was none
}

// AgentDefinition is what a plan has of the definition of an agent: see package agent. The model
// and provider of the agent of a step are in the step.
type AgentDefinition struct {
	Source      string            `yaml:"source"` // its file
	Description string            `yaml:"description,omitempty"`
	Mode        string            `yaml:"mode,omitempty"`      // primary or subagent; empty: both
	Model       string            `yaml:"model,omitempty"`     // of the agent as a subagent; empty: the plan's
	Provider    string            `yaml:"provider,omitempty"`  // the same
	Timeout     time.Duration     `yaml:"timeout,omitempty"`   // the same; 0: none
	MaxTurns    int               `yaml:"max_turns,omitempty"` // 0: no limit
	Tools       []string          `yaml:"tools,omitempty"`     // empty: all that the permissions allow
	MCP         []string          `yaml:"mcp,omitempty"`       // servers; empty: all of the plan
	Skills      []string          `yaml:"skills,omitempty"`
	Prompt      string            `yaml:"prompt"`
	Permissions []permission.Rule `yaml:"permissions,omitempty"` // empty: those that coven grants
	Asks        []permission.Name `yaml:"requires_approval,omitempty"`
	// ApprovalTimeout is how long a person is waited for; 0: the usual time. ApproveOnTimeout means that
	// what can be undone is then approved.
	ApprovalTimeout  time.Duration `yaml:"approval_timeout,omitempty"`
	ApproveOnTimeout bool          `yaml:"approve_on_timeout,omitempty"`
	// Reflection is how the work of the agent as a subagent is evaluated; nil: it is not.
	Reflection *Reflection `yaml:"reflection,omitempty"`
}

// Tree is how the tools are divided between agents, if one only starts the others: see package agenttree.
type Tree struct {
	Root     string   `yaml:"root"`     // the agent that starts the others
	Rounds   int      `yaml:"rounds"`   // how many it starts in one run
	Branches []Branch `yaml:"branches"` // in the order in which they are asked for a tool
}

// Branch is an agent of a tree, with what decides which tools it has.
type Branch struct {
	Agent    string   `yaml:"agent"`
	Prefixes []string `yaml:"tool_prefixes,omitempty"`
	MCP      []string `yaml:"mcp,omitempty"` // servers
}

// Has reports whether an agent is one of those that the root starts.
func (t *Tree) Has(name string) bool {
	return t != nil && slices.ContainsFunc(t.Branches, func(b Branch) bool { return b.Agent == name })
}

// Skill is a skill of agents: see package skill.
type Skill struct {
	Description string   `yaml:"description"`
	MCP         []string `yaml:"mcp,omitempty"` // servers that only agents with the skill use
	Body        string   `yaml:"body"`
}

// Reflection is what a definition says about the evaluation of an agent's work.
type Reflection struct {
	MaxRetries int    `yaml:"max_retries"`
	Criteria   string `yaml:"criteria,omitempty"` // empty: general ones
}

// SpawnRequest asks for a subagent: see package spawn.
type SpawnRequest struct {
	Agent       string    `yaml:"agent"`
	Task        string    `yaml:"task"`
	Permissions *[]string `yaml:"permissions,omitempty"`
	Model       string    `yaml:"model,omitempty"`
	TaskID      string    `yaml:"task_id,omitempty"`
}

// AgentSteps returns the steps that run an agent which they may name.
func (g *Grimoire) AgentSteps() []*Agent {
	var all []*Agent
	for s := range g.All() {
		if a, ok := s.Kind.(*Agent); ok {
			all = append(all, a)
		}
	}
	return all
}

// Worktree has the shell commands that prepare the worktree of a task, and those that run
// before it is removed.
type Worktree struct {
	Setup           []string      `yaml:"setup,omitempty"`
	SetupTimeout    time.Duration `yaml:"setup_timeout,omitempty"` // of all commands together
	Teardown        []string      `yaml:"teardown,omitempty"`
	TeardownTimeout time.Duration `yaml:"teardown_timeout,omitempty"` // of all commands together
}

// PlanVersion is the version of plans: of their format, and of the rules by which their
// sessions run. It is the only supported one.
const PlanVersion = 3

// VersionError reports a plan with a version that this coven does not support.
type VersionError struct{ V int } // 0: the plan has no version

// Newer reports whether a newer coven made the plan.
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

// Proves reports whether a command is a check, which must pass on the exact tree that
// lands.
func (p *Plan) Proves(command string) bool {
	for s := range p.Grimoire.All() {
		if m, ok := s.Kind.(*Merge); ok && slices.Contains(p.ChecksOf(m), command) {
			return true
		}
	}
	return false
}

// ChecksOf returns the checks of a merge step, by default the plan's.
func (p *Plan) ChecksOf(m *Merge) []string {
	if len(m.Checks) == 0 {
		return p.Checks
	}
	return m.Checks
}

// Freeze returns a plan of a grimoire with the current prompts. The caller sets Model,
// Provider, Target, Worktree, Task and Attempt.
func (l *Library) Freeze(g *Grimoire, checks []string) (*Plan, error) {
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
	return &Plan{Grimoire: g, Prompts: p.byName, Checks: checks, Raw: raw}, nil
}

// rawUses returns where commands opt out of quoting.
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

// RenderPrompt renders a prompt of the plan, or a text with a newline as the prompt
// itself, with the data of a step.
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
	return tmpl.PromptWith(file, text, data, lookup, inputs)
}

// prompt finds a prompt of the plan; the name may end in .md.
func (p *Plan) prompt(name string) (Prompt, bool) {
	found, ok := p.Prompts[strings.TrimSuffix(name, ".md")]
	return found, ok
}
