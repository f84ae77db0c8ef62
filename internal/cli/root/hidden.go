package root

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent/evaluator"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/shipped"
)

// The commands below are started by coven itself or by an agent CLI that coven runs. They are parts of
// coven that need their own processes.

// newGate returns the command that connects an agent CLI to the gate; see internal/mcp.
func newGate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "gate", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return mcp.Bridge(a.In, a.Out, a.Getenv) },
	}
}

// newEvaluate returns the command that evaluates definitions in TypeScript; see internal/agent/evaluator.
func newEvaluate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: evaluator.Command, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return exit.Status(evaluator.Main(a.In, a.Out)) },
	}
}

// newPlugin returns the command that serves a built-in plugin.
func newPlugin() *cobra.Command {
	return &cobra.Command{
		Use: "plugin KIND NAME", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			served, ok := shipped.Find(plugins.Kind(args[0]), args[1])
			if !ok {
				return fmt.Errorf("no %s plugin %q is built in", args[0], args[1])
			}
			plugins.Serve(served)
			return nil
		},
	}
}
