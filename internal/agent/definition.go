// Package agent reads the definitions of agents: who they are, their prompts, models,
// permissions and tools.
//
// A definition is a Markdown file with YAML frontmatter, whose body is the agent's prompt, or a
// YAML file with the same keys and the prompt as systemPrompt. Agent files of Claude Code are
// read leniently; everything else is strict: an unknown key or an invalid value makes the
// definition unusable, with a Problem that says where and what instead.
//
// A Registry has the definitions of several places. A later place wins by name; a disabled
// definition hides those of earlier places.
package agent

import (
	"slices"
	"time"

	"github.com/coven-run/coven/internal/lazyregexp"
	"github.com/coven-run/coven/internal/permission"
)

// The sources of definitions.
const (
	SourceSystem  = "system"  // shipped with coven, or the user's
	SourceProject = "project" // the repository's .coven/agents
	SourceClaude  = "claude"  // the repository's .claude/agents
)

// ApprovalTimeout is how long a person is waited for, unless a definition says otherwise.
const ApprovalTimeout = 5 * time.Minute

// TimeoutApproves is the approval_on_timeout of agents whose calls are approved if nobody answers, as far
// as they can be undone.
const TimeoutApproves = "approve"

// The modes of agents; empty: both.
const (
	ModePrimary  = "primary"
	ModeSubagent = "subagent"
)

// Definition is one agent.
type Definition struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Model       string            `json:"model,omitempty"` // empty: the configured default
	Permissions []permission.Rule `json:"permissions"`     // in order; empty: those of the agent that starts it
	Enabled     bool              `json:"enabled"`
	Provider    string            `json:"provider,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Role        string            `json:"role"`
	Domain      string            `json:"domain,omitempty"`

	Capabilities  []string `json:"capabilities,omitempty"`
	Tools         []string `json:"tools,omitempty"` // empty: all that the permissions allow
	ToolPrefixes  []string `json:"tool_prefixes,omitempty"`
	AlwaysInclude bool     `json:"always_include,omitempty"`
	Keywords      []string `json:"keywords,omitempty"`
	Accepts       string   `json:"accepts,omitempty"`
	Returns       string   `json:"returns,omitempty"`
	Cannot        []string `json:"cannot,omitempty"`
	Skills        []string `json:"skills,omitempty"`
	MCP           []string `json:"mcp,omitempty"`

	Temperature *float64      `json:"temperature,omitempty"`
	MaxTokens   int           `json:"maxTokens,omitempty"`
	MaxTurns    int           `json:"max_turns"`
	LimitsTurns bool          `json:"-"` // MaxTurns is in the file
	Timeout     time.Duration `json:"-"`

	EnableReflection   bool   `json:"enable_reflection,omitempty"`
	MaxRetries         int    `json:"max_retries"`
	ReflectionCriteria string `json:"reflection_criteria,omitempty"`

	RequiresApproval  []permission.Name `json:"requires_approval,omitempty"`
	ApprovalTimeout   int               `json:"approval_timeout"` // seconds
	ApprovalOnTimeout string            `json:"approval_on_timeout"`

	Metadata map[string]any `json:"metadata,omitempty"`
	Prompt   string         `json:"prompt"`

	Source string `json:"source"`
	Path   string `json:"path"`
}

// roles are the functions of agents.
func roles() []string {
	return []string{"orchestrator", "specialist", "advisor", "executor", "utility"}
}

// nameRE is a valid name.
var nameRE = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)

// Orchestrator is the name of the agent that only starts others: see package agenttree.
const Orchestrator = "coven-orchestrator"

// reservedNames are what other records call a person, the first agent, and the session, and an agent that no
// file defines.
func reservedNames() []string { return []string{"user", "primary", "session", Orchestrator} }

// MaxFile is the size, in bytes, of a file with a definition.
const MaxFile = 1 << 20

// Limits of definitions.
const (
	maxDescription = 500
	maxTurns       = 500
	maxRetries     = 10
	maxWait        = 86400
	maxHeat        = 2
)

// withDefaults returns a definition without any key.
func withDefaults() Definition {
	return Definition{
		Enabled: true, Role: "specialist", MaxTurns: 50, Timeout: 15 * time.Minute, MaxRetries: 1,
		ApprovalTimeout: int(ApprovalTimeout.Seconds()), ApprovalOnTimeout: "abort",
	}
}

// Models are the short names of models.
func Models() []string { return []string{"sonnet", "haiku", "opus"} }

// modelIDRE is what a full model ID looks like: it has a version, or names its maker.
var (
	modelIDRE  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$`)
	specificRE = lazyregexp.New(`[0-9/:]|^claude-`)
)

// KnownModel reports whether a text names a model: by a short name or a full ID.
func KnownModel(text string) bool {
	return slices.Contains(Models(), text) || modelIDRE.MatchString(text) && specificRE.MatchString(text)
}

// Grants returns the permissions of which the definition has at least something.
func (d Definition) Grants() []permission.Name {
	p := permission.Policy{Agent: d.Name, Layers: []permission.Layer{{Rules: d.Permissions}}}
	return p.Grants()
}
