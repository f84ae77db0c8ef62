// Package agent reads the definitions of agents: their names, prompts, models, permissions and tools.
//
// A definition is a Markdown file with YAML frontmatter, whose body is the agent's prompt, or a
// YAML file with the same keys and the prompt as systemPrompt. Agent files of Claude Code are
// read leniently; everything else is strict: an unknown key or an invalid value makes the
// definition unusable, and a Problem reports the location and a fix.
//
// A Registry holds the definitions of several places. A definition in a later place hides those with the same
// name in earlier places, even if it is disabled. In one place, the first one counts.
package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// The sources of definitions.
const (
	SourceSystem  = "system"  // shipped with coven, or the user's
	SourceProject = "project" // the repository's .coven/agents
	SourceClaude  = "claude"  // the repository's .claude/agents
)

// ApprovalTimeout is the default time to wait for a person's approval.
const ApprovalTimeout = 5 * time.Minute

// TimeoutApproves is the approval_on_timeout of agents whose reversible calls are approved if no person
// answers.
const TimeoutApproves = "approve"

// Modes of agents. An empty mode allows both.
const (
	ModePrimary  = "primary"
	ModeSubagent = "subagent"
)

// Definition is one agent.
type Definition struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Model       string            `json:"model,omitempty"` // empty for the configured default
	Permissions []permission.Rule `json:"permissions"`     // in order; empty to inherit those of the agent that starts it
	Enabled     bool              `json:"enabled"`
	Provider    string            `json:"provider,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Role        string            `json:"role"`
	Profile
	Tools  []string `json:"tools,omitempty"` // empty for all that the permissions allow
	Skills []string `json:"skills,omitempty"`
	MCP    []string `json:"mcp,omitempty"`
	Limits
	Reflection
	Approval
	Metadata map[string]any `json:"metadata,omitempty"`
	Prompt   string         `json:"prompt"`

	Source string `json:"source"`
	Path   string `json:"path"`
}

// Profile describes the work of an agent for choosing it, and for giving it its tools.
type Profile struct {
	Domain        string   `json:"domain,omitempty"`
	Capabilities  []string `json:"capabilities,omitempty"`
	ToolPrefixes  []string `json:"tool_prefixes,omitempty"`
	AlwaysInclude bool     `json:"always_include,omitempty"`
	Keywords      []string `json:"keywords,omitempty"`
	Accepts       string   `json:"accepts,omitempty"`
	Returns       string   `json:"returns,omitempty"`
	Cannot        []string `json:"cannot,omitempty"`
}

// Limits are the limits of an agent and of the answers of its model.
type Limits struct {
	Temperature *float64      `json:"temperature,omitempty"`
	MaxTokens   int           `json:"maxTokens,omitempty"`
	MaxTurns    int           `json:"max_turns"`
	LimitsTurns bool          `json:"-"` // the file sets MaxTurns
	Timeout     time.Duration `json:"-"`
}

// Reflection says whether another agent evaluates the agent's work.
type Reflection struct {
	EnableReflection   bool   `json:"enable_reflection,omitempty"`
	MaxRetries         int    `json:"max_retries"`
	ReflectionCriteria string `json:"reflection_criteria,omitempty"`
}

// Approval says which of the agent's calls a person must approve.
type Approval struct {
	RequiresApproval  []permission.Name `json:"requires_approval,omitempty"`
	ApprovalTimeout   int               `json:"approval_timeout"` // seconds
	ApprovalOnTimeout string            `json:"approval_on_timeout"`
}

func roles() []string {
	return []string{"orchestrator", "specialist", "advisor", "executor", "utility"}
}

// nameRE matches a valid name.
var nameRE = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)

// maxName limits the characters of a name.
const maxName = 64

// Orchestrator is the name of the agent that only starts other agents; see package agenttree.
const Orchestrator = "coven-orchestrator"

// invalidName returns why a name cannot be an agent's, or "".
func invalidName(name string) string {
	switch {
	case slices.Contains(reservedNames(), name):
		return "it is reserved"
	case nameRE.MatchString(name):
		return ""
	case strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII && unicode.IsLetter(c) }):
		return "use the letters a to z: names are also in file names and commands"
	case len(name) > maxName:
		return fmt.Sprintf("use at most %d characters", maxName)
	}
	return "use lowercase letters, digits and '-'"
}

// reservedNames are names with a special meaning in events: a person, the first agent, the session, and
// the orchestrator, which has no definition file.
func reservedNames() []string { return []string{"user", "primary", "session", Orchestrator} }

// MaxFile limits the size of a definition file in bytes.
const MaxFile = 1 << 20

// Limits for fields.
const (
	maxDescription = 500
	maxTurns       = 500
	maxRetries     = 10
	maxWait        = 86400
	maxHeat        = 2
)

// withDefaults returns a definition with all defaults.
func withDefaults() Definition {
	return Definition{
		Enabled: true, Role: "specialist", Limits: Limits{MaxTurns: 50, Timeout: 15 * time.Minute}, Reflection: Reflection{MaxRetries: 1},
		Approval: Approval{ApprovalTimeout: int(ApprovalTimeout.Seconds()), ApprovalOnTimeout: "abort"},
	}
}

// Models returns the short names of models.
func Models() []string { return []string{"sonnet", "haiku", "opus"} }

// A model's name matches the first expression, and a full model ID both: it contains a version or names the vendor.
var (
	modelIDRE  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$`)
	specificRE = lazyregexp.New(`[0-9/:]|^claude-`)
)

// KnownModel reports whether text can be the name of a model: the agent CLIs have short names that coven does not
// know. A word that resembles one of Models is a typing error.
func KnownModel(text string) bool {
	_, misspelt := didyoumean.Nearest(text, Models())
	return modelIDRE.MatchString(text) && (specificRE.MatchString(text) || !misspelt)
}

// Grants returns the permissions that the definition grants at least partly.
func (d Definition) Grants() []permission.Name {
	p := permission.Policy{Agent: d.Name, Layers: []permission.Layer{{Rules: d.Permissions}}}
	return p.Grants()
}
