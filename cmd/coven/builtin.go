package main

import (
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
