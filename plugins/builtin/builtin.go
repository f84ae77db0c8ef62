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
	"github.com/coven-run/coven/plugins/provider"
)

// Builtins returns the built-in plugins.
func Builtins() map[plugins.Kind]map[string]plugins.Served {
	providers := map[string]plugins.Served{}
	for name, driver := range Drivers() {
		providers[name] = plugins.Provider(driver)
	}
	return map[plugins.Kind]map[string]plugins.Served{
		plugins.KindProvider: providers,
		plugins.KindReviewer: {"agent": plugins.Reviewer(agent.Reviewer{}), "command": plugins.Reviewer(command.Reviewer{})},
		plugins.KindArbiter:  {"agent": plugins.Arbiter(agent.Arbiter{}), "rules": plugins.Arbiter(rules.Arbiter{})},
	}
}

// Shipped returns a built-in plugin.
func Shipped(kind plugins.Kind, name string) (plugins.Served, bool) {
	served, ok := Builtins()[kind][name]
	return served, ok
}

// Drivers returns the built-in providers.
func Drivers() map[string]provider.Provider {
	return map[string]provider.Provider{
		"claude": claude.Provider{Getenv: os.Getenv},
		"codex":  codex.Provider{Getenv: os.Getenv},
		"qwen":   qwen.Provider{Getenv: os.Getenv},
	}
}

// AgentCLI is an agent CLI, with the name of its provider.
type AgentCLI struct {
	Program string
	npm     string // its npm package
	Tested  string // the version that coven is tested with, as in .ci/pins
}

// AgentCLIs returns the CLIs of the built-in providers.
func AgentCLIs() []AgentCLI {
	return []AgentCLI{
		{"claude", "@anthropic-ai/claude-code", "2.1.330"},
		{"codex", "@openai/codex", "0.169.0"},
		{"qwen", "@qwen-code/qwen-code", "0.15.10"},
	}
}

// Install returns the command that installs the CLI.
func (c AgentCLI) Install() string { return "npm install -g " + c.npm }

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
