// Package mcp holds the commands about the MCP servers of agents, and about coven as an MCP server.
package mcp

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/outside"
	"github.com/coven-run/coven/internal/mcp"
)

// NewMCP returns the command coven mcp.
func NewMCP(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "mcp", Short: "List MCP servers of agents, and offer coven's tools to others",
	}, newServe(a), newList(a), newTools(a))
}

func newServe(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve tools of coven over MCP on standard input and output",
		Long: `Serve tools of coven over MCP on standard input and output, for an agent that you start yourself:
Claude Code, Gemini CLI or another program. The program starts this command in your repository and
ends it.

read_note, list_notes and semantic_search read the repository, as far as your permission rules
allow. list_agents and spawn_agent start agents of coven: each has a task and a worktree of its own,
and what it changed waits for you. request_approval asks you in the program, if that can ask.`,
		Example: `  claude mcp add coven -- coven mcp serve
  gemini mcp add coven coven mcp serve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tools, err := outside.Tools(cmd.Context(), a.Open)
			if err != nil {
				return err
			}
			return mcp.Serve(cmd.Context(), mcp.ServeOptions{Version: a.Version, In: a.In, Out: a.Out, Tools: tools, Inquiries: outside.Inquiries()})
		},
	}
}
