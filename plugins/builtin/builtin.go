// Package builtin lists the plugins that coven ships, and the agent CLIs they drive.
package builtin

import (
	"errors"
	"io/fs"
	"os"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/agent"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/builtin/codex"
	"github.com/coven-run/coven/plugins/builtin/command"
	"github.com/coven-run/coven/plugins/builtin/qwen"
	"github.com/coven-run/coven/plugins/builtin/rules"
	"github.com/coven-run/coven/plugins/builtin/scripted"
	"github.com/coven-run/coven/plugins/provider"
)

// Builtins returns the built-in plugins.
func Builtins() map[plugins.Kind]map[string]plugins.Served {
	providers := map[string]plugins.Served{}
	for name, p := range Providers() {
		providers[name] = plugins.Provider(p)
	}
	return map[plugins.Kind]map[string]plugins.Served{
		plugins.KindProvider: providers,
		plugins.KindModel:    {"scripted": plugins.Model(scripted.Model{Getenv: os.Getenv})},
		plugins.KindReviewer: {"agent": plugins.Reviewer(agent.Reviewer{}), "command": plugins.Reviewer(command.Reviewer{})},
		plugins.KindArbiter:  {"agent": plugins.Arbiter(agent.Arbiter{}), "rules": plugins.Arbiter(rules.Arbiter{})},
	}
}

// Shipped returns a built-in plugin.
func Shipped(kind plugins.Kind, name string) (plugins.Served, bool) {
	served, ok := Builtins()[kind][name]
	return served, ok
}

// Providers returns the built-in providers.
func Providers() map[string]provider.Provider {
	return map[string]provider.Provider{
		"claude": claude.Provider{Getenv: os.Getenv},
		"codex":  codex.Provider{Getenv: os.Getenv},
		"qwen":   qwen.Provider{Getenv: os.Getenv},
	}
}

// Capabilities returns what a built-in provider declares.
func Capabilities(name string) provider.Capabilities {
	return map[string]provider.Capabilities{
		"claude": {provider.Gated, provider.Resume, provider.Messages},
		"codex":  {provider.Resume, provider.ReadOnly},
		"qwen":   {provider.Resume, provider.ReadOnly},
	}[name]
}

// ModelNames returns the short names of models that the CLI of a built-in provider takes,
// the usual one first; nil if coven does not know them.
func ModelNames(name string) []string {
	if name == "claude" {
		return []string{"sonnet", "opus", "haiku", "opusplan", "best", "default"}
	}
	return nil
}

// AgentCLI is an agent CLI, with the name of its provider.
type AgentCLI struct {
	Program string
	npm     string   // its npm package
	Tested  string   // the version that coven is tested with, as in .ci/pins
	Login   string   // the command that logs in; empty: only a key does
	Keys    []string // variables with a credential; the CLI prefers them to a login
	homeVar string   // selects the directory of the user's settings and conversations
	home    string   // that directory without the variable, below the user's home
}

// AgentCLIs returns the CLIs of the built-in providers.
func AgentCLIs() []AgentCLI {
	return []AgentCLI{
		{"claude", "@anthropic-ai/claude-code", "2.1.330", "claude auth login", []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, "CLAUDE_CONFIG_DIR", ".claude"},
		{"codex", "@openai/codex", "0.169.0", "codex login", []string{"CODEX_API_KEY"}, "CODEX_HOME", ".codex"},
		{"qwen", "@qwen-code/qwen-code", "0.15.10", "", []string{"OPENAI_API_KEY"}, "QWEN_HOME", ".qwen"},
	}
}

// CLIOf returns the CLI of a built-in provider.
func CLIOf(provider string) (AgentCLI, bool) {
	for _, c := range AgentCLIs() {
		if c.Program == provider {
			return c, true
		}
	}
	return AgentCLI{}, false
}

// Install returns the command that installs the CLI.
func (c AgentCLI) Install() string { return "npm install -g " + c.npm }

// Refused explains that the API refused the login of the CLI, and returns the command that
// helps.
func (c AgentCLI) Refused(getenv func(string) string) (why, next string) {
	for _, key := range c.Keys {
		if getenv(key) != "" {
			return key + " is wrong", "export " + key + "=..."
		}
	}
	if c.Login == "" {
		return c.Keys[0] + " is not set", "export " + c.Keys[0] + "=..."
	}
	return c.Program + " is not logged in", c.Login
}

// Installer returns the command that installs a program that was not found.
func Installer(err error) string {
	missing := (*fs.PathError)(nil)
	if errors.As(err, &missing) {
		for _, c := range AgentCLIs() {
			if c.Program == missing.Path {
				return c.Install()
			}
		}
	}
	return "install it"
}
