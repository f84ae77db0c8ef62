// Package agents holds the commands about the definitions of agents.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// NewAgents returns the command coven agents.
func NewAgents(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "agents", Short: "List, show and validate the definitions of agents, and choose one",
	}, newList(a), newShow(a), newValidate(a), newResolve(a), newTree(a))
}

// listedJSON is an agent as agents list --json prints it.
type listedJSON struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Model       string   `json:"model"`
	Source      string   `json:"source"`
	Path        string   `json:"path"`
	Domain      string   `json:"domain,omitempty"`
	Permissions []string `json:"permissions"`
	Hides       []string `json:"hides"` // files of the same name
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	var domain string
	cmd := &cobra.Command{
		Use: "list", Short: "List the agents that are defined and enabled", Args: cobra.NoArgs,
		Long: `List the agents that are defined and enabled: those that coven ships, yours
($XDG_CONFIG_HOME/coven/agents), and the repository's (.coven/agents; .claude/agents). Of
several agents with one name, the one in .coven/agents counts, then yours, then the one in
.claude/agents: the last lines say which file hides which. An agent with enabled: false is
not listed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, r, err := open(cmd.Context(), a)
			if err != nil {
				return err
			}
			all := r.Agents()
			if domain != "" {
				all = r.ByDomain(domain)
			}
			if asJSON {
				out := []listedJSON{}
				for _, d := range all {
					f, _ := r.Find(d.Name)
					out = append(out, listedJSON{d.Name, d.Description, cmp.Or(d.Model, p.Config.DefaultModel), d.Source, d.Path, d.Domain, words(d), append([]string{}, f.Hides...)})
				}
				return a.PrintJSON(out)
			}
			err = cli.PrintTable(a, "NAME\tDESCRIPTION\tMODEL\tSOURCE\tPERMISSIONS", all, func(d agent.Definition) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", d.Name, terminal.Clip(terminal.Printable(oneline.Of(d.Description)), 60),
					terminal.Printable(cmp.Or(d.Model, p.Config.DefaultModel)), d.Source, terminal.Printable(strings.Join(words(d), ", ")))
			})
			if err != nil {
				return err
			}
			return a.Printf("%s", hidden(slices.DeleteFunc(slices.Clone(r.All()), func(f agent.Found) bool { return !f.Enabled })))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&domain, "domain", "", "only agents of this `DOMAIN`")
	return cmd
}

// open reads the definitions and warns of those that cannot be used.
func open(ctx context.Context, a *cli.App) (*project.Project, *agent.Registry, error) {
	p, err := a.OpenOrOutside(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := p.Agents()
	warned := map[string]bool{}
	for _, problem := range r.Problems() {
		if !warned[problem.Path] && !problem.Warning {
			warned[problem.Path] = true
			fmt.Fprintf(a.Err, "warning: %s:%d: %s\n", terminal.Printable(problem.Path), max(problem.Line, 1), terminal.Printable(problem.Message)) //nolint:errcheck // standard error
		}
	}
	return p, r, nil
}

// words returns the permissions of an agent in the words of definitions.
func words(d agent.Definition) []string {
	all := []string{}
	for _, r := range d.Permissions {
		word := r.String()
		if r.Action == permission.Allow && r.Pattern == permission.Everything {
			word = r.Permission.Word()
		}
		all = append(all, word)
	}
	return all
}

func newShow(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the definition of an agent, its file and its prompt",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteOne(cli.AgentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.OpenOrOutside(cmd.Context())
			if err != nil {
				return err
			}
			f, err := p.Agents().Find(args[0])
			if err != nil {
				return notFound(err)
			}
			if isBad(f.Problems) {
				return exit.Failedf("coven agents validate "+args[0], "%s", f.Problems[0])
			}
			if asJSON {
				return a.PrintJSON(f.Definition)
			}
			return a.Printf("%s", page(f.Definition, p.Config.DefaultModel))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// notFound adds the exit code and next command for an agent that does not exist.
func notFound(err error) error {
	switch missing := (*agent.NotFoundError)(nil); {
	case !errors.As(err, &missing):
	case missing.Name == agent.Orchestrator:
		return exit.Failedf("coven agents tree --instruction", "%w: no file defines it", err)
	default:
		return exit.Failedf("coven agents list", "%w", err)
	}
	return err
}

// page returns the output of agents show.
func page(d agent.Definition, model string) string {
	var b strings.Builder
	line := func(key string, value any) {
		if text := fmt.Sprint(value); text != "" && text != "[]" && text != "0" {
			fmt.Fprintf(&b, "%s: %s\n", key, terminal.Printable(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")))
		}
	}
	list := func(key string, items []string) { line(key, strings.Join(items, ", ")) }
	line("name", d.Name)
	line("description", oneline.Of(d.Description))
	line("file", d.Path)
	line("source", d.Source)
	line("enabled", d.Enabled)
	if d.Model == "" {
		model += " (default)"
	}
	line("model", cmp.Or(d.Model, model))
	list("permissions", words(d))
	line("provider", d.Provider)
	line("mode", d.Mode)
	line("role", d.Role)
	line("domain", d.Domain)
	list("capabilities", d.Capabilities)
	list("tools", d.Tools)
	list("skills", d.Skills)
	list("mcp", d.MCP)
	list("keywords", d.Keywords)
	line("accepts", d.Accepts)
	line("returns", d.Returns)
	list("cannot", d.Cannot)
	line("max_turns", d.MaxTurns)
	line("timeout", d.Timeout)
	if d.EnableReflection {
		line("enable_reflection", true)
		line("max_retries", d.MaxRetries)
		line("reflection_criteria", oneline.Of(d.ReflectionCriteria))
	}
	if len(d.RequiresApproval) > 0 {
		line("requires_approval", permission.Join(d.RequiresApproval))
		line("approval_timeout", fmt.Sprint(d.ApprovalTimeout, "s"))
		line("approval_on_timeout", d.ApprovalOnTimeout)
	}
	return b.String() + "\n" + terminal.PrintableLines(strings.TrimRight(d.Prompt, "\n")) + "\n"
}
