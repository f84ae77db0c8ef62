package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/schema"
)

// Agent is a step that runs an agent.
type Agent struct {
	Prompt        string            `yaml:"prompt,omitempty" about:"name of a prompt; a text with more than one line is the prompt itself"`
	Spell         string            `yaml:"spell,omitempty" about:"the same as prompt"` // only in files
	Input         map[string]string `yaml:"input,omitempty" about:"templates by name, for the prompt: {{.input.NAME}}"`
	Agent         string            `yaml:"agent,omitempty" about:"name of the agent's definition; build"`
	Model         string            `yaml:"model,omitempty" about:"model of the agent"`              // empty for the plan's model
	Provider      string            `yaml:"provider,omitempty" about:"provider that runs the agent"` // a plugin, empty for the plan's provider
	ExpectChanges bool              `yaml:"expect,omitempty" oneof:"changes" true:"changes" about:"changes: an agent that changes nothing fails"`
	Env           map[string]string `yaml:"env,omitempty" about:"templates by variable"`
	Workdir       string            `yaml:"workdir,omitempty" about:"directory in the worktree"` // empty for the top of the worktree
}

func newAgent() Kind { return &Agent{} }

// Type implements Kind.
func (*Agent) Type() string { return "agent" }

func (a *Agent) read(r *reader, at position) {
	prompt, spell := r.doc.Key(at.node, "prompt"), r.doc.Key(at.node, "spell")
	switch {
	case prompt.Set() && spell.Set():
		r.doc.Fail(spell, "prompt and spell are two names of one key", "keep prompt")
	case spell.Set():
		prompt, a.Prompt = spell, a.Spell
	case !prompt.Set():
		r.doc.Fail(at.node, fmt.Sprintf("the agent step %q has no prompt", at.step), "the name of a prompt, or the prompt itself as a text with more than one line")
	}
	a.Spell = ""
	if prompt.Set() && strings.TrimSpace(a.Prompt) == "" {
		r.doc.Fail(prompt, "the prompt is empty", "")
	}
	r.templates(textTemplate, at.step, a.Input, r.doc.Key(at.node, "input"))
	r.env(at, a.Env)
	r.workdir(at, a.Workdir)
	if name := r.doc.Key(at.node, "agent"); name.Set() && !pluginRE.MatchString(a.Agent) {
		r.doc.Fail(name, fmt.Sprintf("%q cannot be the name of an agent", a.Agent), "small letters, digits and -, the first a letter or digit")
	}
	if a.Agent != "" {
		r.use(UseAgent, a.Agent, r.doc.Key(at.node, "agent"))
	}
	provider := r.doc.Key(at.node, "provider")
	r.use("provider", a.Provider, provider)
	if provider.Set() && !pluginRE.MatchString(a.Provider) {
		r.doc.Fail(provider, fmt.Sprintf("%q cannot be the name of a plugin", a.Provider), "small letters, digits and -, the first a letter or digit")
	}
	r.template(promptTemplate, at.step, a.Prompt, prompt)
	inputs := r.doc.Keys(r.doc.Key(at.node, "input"))
	for _, name := range slices.Sorted(maps.Keys(a.Input)) {
		if !nameRE.MatchString(name) {
			r.doc.Fail(inputs[name], fmt.Sprintf("%q cannot be a name", name), "letters, digits, - and _")
		}
	}
}

func (a *Agent) words() []string {
	words := []string{"agent", promptText(a.Prompt)}
	if a.Model != "" {
		words = append(words, a.Model)
	}
	if a.ExpectChanges {
		words = append(words, "must change something")
	}
	return words
}

func (a *Agent) agents() []Agent { return []Agent{*a} }

func (a *Agent) plugins() []Use {
	if a.Provider == "" {
		return nil
	}
	return []Use{{Kind: "provider", Name: a.Provider}}
}

func (a *Agent) texts() (run []string, named map[string]string) {
	named = map[string]string{}
	maps.Copy(named, a.Input)
	maps.Copy(named, a.Env)
	return []string{a.Prompt, a.Workdir}, named
}

func (a *Agent) secrets() []string { return secretsOfEnv(a.Env) }

func (*Agent) describe(s *schema.Schema) {
	schema.Set(s, "agent", nameSchema(pluginRE))
	schema.Set(s, "provider", nameSchema(pluginRE))
	s.AnyOf = []*schema.Schema{{Required: []string{"prompt"}}, {Required: []string{"spell"}}}
}

// DefaultAgent is the agent of steps that do not name one.
const DefaultAgent = "build"
