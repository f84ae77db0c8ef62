package agents

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/toolcall"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

func newTree(a *cli.App) *cobra.Command {
	var asJSON, instruction bool
	var list string
	cmd := &cobra.Command{
		Use: "tree", Short: "Show which agent has which tools, and who starts whom", Args: cobra.NoArgs,
		Long: `Show which agent has which tools, and who starts whom. With agent.multiAgent in the
configuration, an orchestrator without tools delegates a task to specialists, each of which
has the tools whose names begin with its tool_prefixes; specialists without tools are left
out. Otherwise one agent has all tools.

The tools are those of coven's own loop that the default agent may use. Those of MCP servers
are not shown: they are divided when an agent connects to the server.`,
		Example: `  coven agents tree
  coven agents tree --tools exec_shell,fs_read,deploy_app
  coven agents tree --instruction`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, _, err := open(cmd.Context(), a)
			if err != nil {
				return err
			}
			tree, tools, err := toolcall.Tree(p, named(cmd, list))
			if err != nil {
				return notFound(err)
			}
			switch {
			case instruction && !p.Config.Agent.MultiAgent:
				return exit.Failedf("coven config set agent.multiAgent true", "there is no orchestrator: agent.multiAgent is false")
			case instruction:
				return a.Printf("%s", terminal.PrintableLines(tree.Instruction(tools, p.Config.Agent.MaxRounds)))
			case asJSON:
				return a.PrintJSON(tree)
			}
			return a.Printf("%s", drawn(tree))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&instruction, "instruction", false, "print what the orchestrator is told")
	cmd.Flags().StringVar(&list, "tools", "", "divide these tools instead: their `NAMES`, with commas; \"\" for none")
	cli.AllowEmpty(cmd, "tools")
	cmd.MarkFlagsMutuallyExclusive("json", "instruction")
	return cmd
}

// named returns the names in the value of --tools, or nil if the flag is not given.
func named(cmd *cobra.Command, list string) []string {
	if !cmd.Flags().Changed("tools") {
		return nil
	}
	names := []string{}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// drawn returns the output of agents tree.
func drawn(tree agenttree.Tree) string {
	var b strings.Builder
	node := func(t agenttree.Tree, first, rest string) {
		fmt.Fprintf(&b, "%s%s: %s\n", first, t.Name, terminal.Printable(oneline.Of(t.Description)))
		if len(t.Tools) > 0 {
			fmt.Fprintf(&b, "%s  %s\n", rest, terminal.Printable(strings.Join(t.Tools, ", ")))
		}
	}
	node(tree, "", "")
	for i, child := range tree.Children {
		first, rest := "├─ ", "│  "
		if i == len(tree.Children)-1 {
			first, rest = "└─ ", "   "
		}
		node(child, first, rest)
	}
	if len(tree.Unmatched) > 0 {
		fmt.Fprintf(&b, "warning: no agent has %s: their names begin with no tool_prefixes of an agent\n", terminal.Printable(strings.Join(tree.Unmatched, ", ")))
	}
	return b.String()
}
