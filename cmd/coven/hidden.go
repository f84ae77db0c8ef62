package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/builtin/codex"
	"github.com/coven-run/coven/plugins/builtin/qwen"
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
			served, ok := shipped(args[0], args[1])
			if !ok {
				return fmt.Errorf("no %s plugin %q is built in", args[0], args[1])
			}
			plugins.Serve(served)
			return nil
		},
	}
}

// shipped returns a plugin that is built in.
func shipped(kind, name string) (plugins.Served, bool) {
	if driver, ok := builtin(name); ok && kind == "provider" {
		return plugins.Provider(driver), true
	}
	return plugins.Served{}, false
}

// builtin returns a provider that is built in. grimoires.Providers has the names: a
// test compares them.
func builtin(name string) (provider.Provider, bool) {
	switch name {
	case "claude":
		return claude.Provider{}, true
	case "codex":
		return codex.Provider{Getenv: os.Getenv}, true
	case "qwen":
		return qwen.Provider{Getenv: os.Getenv}, true
	}
	return nil, false
}
