package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/agent"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/builtin/codex"
	"github.com/coven-run/coven/plugins/builtin/command"
	"github.com/coven-run/coven/plugins/builtin/qwen"
	"github.com/coven-run/coven/plugins/builtin/rules"
	"github.com/coven-run/coven/plugins/provider"
)

// The commands below are started by coven itself, or by an agent CLI that coven
// runs: they are parts of coven that live in processes of their own.

// newGate is the bridge between an agent CLI and the gate: see internal/mcp.
func newGate(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "gate", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return mcp.Bridge(a.in, a.out, a.getenv) },
	}
}

// newPlugin serves one of the plugins that we ship.
func newPlugin() *cobra.Command {
	return &cobra.Command{
		Use: "plugin KIND NAME", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			served, ok := shipped(plugins.Kind(args[0]), args[1])
			if !ok {
				return fmt.Errorf("no %s plugin %q is built in", args[0], args[1])
			}
			plugins.Serve(served)
			return nil
		},
	}
}

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
