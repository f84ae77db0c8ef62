// Package tools holds the commands about the tools of agents.
package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/toolcall"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
)

// NewTools returns the command coven tools.
func NewTools(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "tools", Short: "List, show, call and export the tools of agents",
		Long: `List, show, call and export the tools that agents have in coven's own loop: those of coven, and
those of the repository in .coven/tools, which agents have whose definitions name them. An agent
CLI such as Claude Code brings tools of its own instead of most of them.`,
	}, newList(a), newShow(a), newCall(a), newExport(a))
}

// selection holds the flag --agent, which selects tools.
type selection struct {
	app   *cli.App
	agent string
}

func (s *selection) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.agent, "agent", "", "only tools that the agent `NAME` has")
	cli.CompleteFlag(cmd, "agent", s.app.CompleteWords(cli.AgentNames))
}

// tools returns the selected tools. It warns of files that are not valid.
func (s *selection) tools(cmd *cobra.Command) ([]tool.Tool, error) {
	p, err := s.app.OpenOrOutside(cmd.Context())
	if err != nil {
		return nil, err
	}
	all, problems, err := toolcall.Tools(p)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		fmt.Fprintf(s.app.Err, "warning: %s\n", terminal.Printable(problems[name].Error())) //nolint:errcheck // standard error
	}
	if s.agent == "" {
		return all, nil
	}
	d, err := p.Agents().Get(s.agent)
	if err != nil {
		return nil, exit.Failedf("coven agents list", "%w", err)
	}
	return toolcall.ToolsOf(p, d, all), nil
}

// toolJSON is a tool as tools list --json and tools show --json print it.
type toolJSON struct {
	Name        string          `json:"name"`
	ID          string          `json:"id"`
	Category    string          `json:"category"`
	Permission  permission.Name `json:"permission"` // may be empty
	Source      string          `json:"source"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func jsonOf(t tool.Tool) toolJSON {
	return toolJSON{t.Name, t.ID, t.Category, t.Permission, t.Source, t.Description, t.Schema}
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	s := &selection{app: a}
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools, with the permission that each needs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := s.tools(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				out := []toolJSON{}
				for _, t := range all {
					out = append(out, jsonOf(t))
				}
				return a.PrintJSON(out)
			}
			return cli.PrintTable(a, "NAME\tID\tCATEGORY\tPERMISSION\tSOURCE\tDESCRIPTION", all, func(t tool.Tool) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", t.Name, t.ID, t.Category, t.Permission, terminal.Printable(t.Source),
					terminal.Clip(terminal.Printable(oneline.Of(t.Description)), 60))
			})
		},
	}
	s.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newShow(a *cli.App) *cobra.Command {
	var asJSON bool
	s := &selection{app: a}
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a tool: its description and its parameters", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := s.tools(cmd)
			if err != nil {
				return err
			}
			t, ok := tool.Find(all, args[0])
			if !ok {
				return exit.Failedf("coven tools list", "there is no tool %s%s", args[0], didyoumean.Aside(args[0], names(all)))
			}
			if asJSON {
				return a.PrintJSON(jsonOf(t))
			}
			var schema bytes.Buffer
			if err := json.Indent(&schema, t.Schema, "", "  "); err != nil {
				return fmt.Errorf("the parameters of %s: %w", t.Name, err)
			}
			text := fmt.Sprintf("name        %s\nid          %s\ncategory    %s\npermission  %s\nsource      %s\n\n%s\n\n%s\n",
				t.Name, t.ID, t.Category, cmp.Or(t.Permission, "none"), t.Source, t.Description, schema.String())
			return a.Printf("%s", terminal.PrintableLines(text))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func names(all []tool.Tool) (names []string) {
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names
}

func newExport(a *cli.App) *cobra.Command {
	var format string
	s := &selection{app: a}
	cmd := &cobra.Command{
		Use: "export", Short: "Print the tools in the form that a model API or an MCP client expects", Args: cobra.NoArgs,
		Example: `  coven tools export --format openai --agent build`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(tool.Formats(), format) {
				return exit.Usagef("coven tools export --help", "unknown format %q%s", format, didyoumean.Aside(format, tool.Formats()))
			}
			all, err := s.tools(cmd)
			if err != nil {
				return err
			}
			out, err := tool.ToProvider(all, format)
			if err != nil {
				return err
			}
			return a.PrintJSON(out)
		},
	}
	cmd.Flags().StringVar(&format, "format", tool.Formats()[0], "the `FORM`: "+strings.Join(tool.Formats(), ", "))
	cli.CompleteFlag(cmd, "format", cli.CompleteList(tool.Formats()...))
	s.add(cmd)
	return cmd
}

// maxArguments limits the arguments from standard input, in bytes.
const maxArguments = 16 << 20

func newCall(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "call NAME [JSON]", Short: "Run a tool in the current checkout, and print its answer",
		Long: `Run a tool in the current checkout, and print its answer. JSON is an object with its arguments,
or - to read it from standard input. The call passes the gate: what your rules deny is refused. A tool that may
change files runs only in the worktree of a task that nobody works at: a snapshot is taken before, and
commands run in the sandbox. todo and the tools that start agents or ask need an agent.`,
		Example: `  coven tools call grep '{"pattern": "func main", "glob": "*.go"}'
  coven tools call ls`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments := "{}"
			if len(args) == 2 {
				arguments = args[1]
			}
			if arguments == "-" {
				text, err := io.ReadAll(io.LimitReader(a.In, maxArguments))
				if err != nil {
					return fmt.Errorf("read the arguments: %w", err)
				}
				arguments = string(text)
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			c, err := control.New(p)
			if err != nil {
				return err
			}
			defer c.Close()
			text, err := toolcall.Call(cmd.Context(), c, args[0], json.RawMessage(arguments))
			if err != nil {
				return err
			}
			return a.Printf("%s\n", strings.TrimSuffix(terminal.PrintableLines(text), "\n"))
		},
	}
	return cmd
}
