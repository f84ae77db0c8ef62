package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/mcp/client"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
)

// listedServer is a server as mcp list --json prints it.
type listedServer struct {
	Name    string   `json:"name"`
	What    string   `json:"what"`
	File    string   `json:"file"`
	Trusted bool     `json:"trusted"`
	Hides   []string `json:"hides"` // files that have a server of the same name
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the MCP servers that agents can use",
		Long: `List the MCP servers that agents can use: those of .coven/mcp.json, of your own mcp.json and of
.mcp.json, the file of all programs. It starts none of them. Those of the repository need trust: see
coven trust. A server that cannot be used, and a key that coven does not know, are named.`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			all, problems, err := listServers(p)
			if err != nil {
				return err
			}
			for _, problem := range problems {
				kind := "warning"
				if problem.IsNote {
					kind = "note"
				}
				fmt.Fprintf(a.Err, "%s: %s\n", kind, terminal.Printable(problem.Error())) //nolint:errcheck // standard error
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			return printServers(a, all)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listServers(p *project.Project) ([]listedServer, []servers.Problem, error) {
	found, problems, err := p.MCPServers()
	all := []listedServer{}
	for _, s := range found {
		wanted, err := p.ServerRequests([]servers.Server{s.Server})
		if err != nil {
			return nil, nil, err
		}
		all = append(all, listedServer{s.Name, s.What(), s.File, p.CheckRequests(wanted) == nil, append([]string{}, s.Hides...)})
	}
	return all, problems, err
}

func printServers(a *cli.App, all []listedServer) error {
	if len(all) == 0 {
		return a.Printf("no MCP servers: see coven help mcp\n")
	}
	return cli.PrintTable(a, "", all, func(s listedServer) string {
		state := "trusted"
		if !s.Trusted {
			state = "not trusted"
		}
		what := oneline.Of(s.What)
		if len(s.Hides) > 0 {
			what += fmt.Sprintf(" (hides that of %s)", strings.Join(s.Hides, ", "))
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s", s.Name, state, terminal.Printable(s.File), terminal.Printable(what))
	})
}

// listedTool is a tool as mcp tools --json prints it.
type listedTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

func newTools(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tools [NAME...]", Short: "Start MCP servers, and list their tools",
		Long: `Start MCP servers, or those that are named, and list their tools with the names that agents use. A
server is started in the sandbox and can change nothing but files of its own; one that
fails does not stop the others.`,
		ValidArgsFunction: a.CompleteWords(serverNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return listTools(cmd.Context(), a, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func serverNames(_ context.Context, p *project.Project, _ []string) (names []string) {
	found, _, _ := p.MCPServers() // without them, nothing is completed
	for _, s := range found {
		names = append(names, s.Name)
	}
	return names
}

func listTools(ctx context.Context, a *cli.App, names []string, asJSON bool) error {
	p, err := a.Open(ctx)
	if err != nil {
		return err
	}
	use, err := chosen(p, names)
	if err != nil {
		return err
	}
	wanted, err := p.ServerRequests(use)
	if err != nil {
		return err
	}
	if err := p.CheckRequests(wanted); err != nil {
		return err
	}
	c, err := control.New(p)
	if err != nil {
		return err
	}
	defer c.Close()
	set := client.Connect(ctx, use, client.Options{Version: a.Version, Getenv: a.Getenv, Start: c.Runtime.StartServer, Taken: tool.Names()})
	defer set.Close()
	return printTools(a, set, asJSON)
}

// chosen returns the named servers, or all if there are no names.
func chosen(p *project.Project, names []string) ([]servers.Server, error) {
	found, _, err := p.MCPServers()
	var all []servers.Server
	for _, s := range found {
		all = append(all, s.Server)
	}
	if err != nil || len(names) == 0 {
		return all, err
	}
	known := serverNames(context.Background(), p, nil)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.Failedf("coven mcp list", "there is no MCP server %q%s", name, didyoumean.Aside(name, known))
		}
	}
	return slices.DeleteFunc(all, func(s servers.Server) bool { return !slices.Contains(names, s.Name) }), nil
}

func printTools(a *cli.App, set *client.Set, asJSON bool) error {
	all := []listedTool{}
	for _, t := range set.Tools() {
		all = append(all, listedTool{t.Name, t.Server, t.Description, t.Schema})
	}
	var err error
	if asJSON {
		err = a.PrintJSON(all)
	} else {
		err = cli.PrintTable(a, "", all, func(t listedTool) string {
			return fmt.Sprintf("%s\tmcp:%s\t%s", t.Name, t.Server, terminal.Printable(oneline.Clip(oneline.Of(t.Description), 80)))
		})
	}
	if err != nil {
		return err
	}
	for _, f := range set.Failures() {
		a.PrintError(exit.Failedf("coven mcp list", "MCP server %s: %w", f.Server, f.Err))
	}
	if len(set.Failures()) > 0 {
		return exit.Status(exit.Failed)
	}
	return nil
}
