package main

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

// builtins are the plugins that are built in.
func builtins() map[plugins.Kind]map[string]plugins.Served {
	providers := map[string]plugins.Served{}
	for name, driver := range drivers() {
		providers[name] = plugins.Provider(driver)
	}
	return map[plugins.Kind]map[string]plugins.Served{
		plugins.KindProvider: providers,
		plugins.KindReviewer: {"agent": plugins.Reviewer(agent.Reviewer{}), "command": plugins.Reviewer(command.Reviewer{})},
		plugins.KindArbiter:  {"agent": plugins.Arbiter(agent.Arbiter{}), "rules": plugins.Arbiter(rules.Arbiter{})},
	}
}

// shipped returns a plugin that is built in.
func shipped(kind plugins.Kind, name string) (plugins.Served, bool) {
	served, ok := builtins()[kind][name]
	return served, ok
}

// drivers are the providers that are built in.
func drivers() map[string]provider.Provider {
	return map[string]provider.Provider{
		"claude": claude.Provider{Getenv: os.Getenv},
		"codex":  codex.Provider{Getenv: os.Getenv},
		"qwen":   qwen.Provider{Getenv: os.Getenv},
	}
}

// agentCLI is a program that drives agents, under the name of its provider.
type agentCLI struct {
	program string
	npm     string // its package
	tested  string // the version that coven is tested with, as .ci/pins has it
}

// agentCLIs are those of the providers that are shipped.
func agentCLIs() []agentCLI {
	return []agentCLI{
		{"claude", "@anthropic-ai/claude-code", "2.1.330"},
		{"codex", "@openai/codex", "0.169.0"},
		{"qwen", "@qwen-code/qwen-code", "0.15.10"},
	}
}

// install is the command that installs it.
func (c agentCLI) install() string { return "npm install -g " + c.npm }

// installer is the command that installs a program which was not found.
func installer(err error) string {
	missing := (*fs.PathError)(nil)
	if errors.As(err, &missing) {
		for _, c := range agentCLIs() {
			if c.program == missing.Path {
				return c.install()
			}
		}
	}
	return "install it"
}
