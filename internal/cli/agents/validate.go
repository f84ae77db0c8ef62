package agents

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/evaluator"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

func newValidate(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "validate [NAME|FILE]", Short: "Find errors in the definitions of agents",
		Long: `Find errors in the definitions of agents: in all files, also those that others hide and
those with enabled: false, or in one. A FILE has a slash in its name or ends with .md,
.yaml, .yml or .ts; it may be anywhere.`,
		Example: `  coven agents validate
  coven agents validate code-reviewer
  coven agents validate drafts/reviewer.md`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.CompleteOne(cli.AgentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := validated(cmd, a, args)
			if err != nil {
				return err
			}
			bad := slices.ContainsFunc(all, func(f agent.Found) bool { return isBad(f.Problems) })
			switch {
			case asJSON:
				err = a.PrintJSON(problemsOf(all))
			case len(args) == 1:
				err = a.Printf("%s", verdict(all[0]))
			default:
				err = a.Printf("%s", summary(all, bad))
			}
			if err == nil && bad {
				return exit.Status(exit.Failed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// validated returns the agent or file that an argument names, or all agents.
func validated(cmd *cobra.Command, a *cli.App, args []string) ([]agent.Found, error) {
	if len(args) == 1 && (filepath.Base(args[0]) != args[0] || slices.Contains([]string{".md", ".yaml", ".yml", ".ts"}, filepath.Ext(args[0]))) {
		d, problems, err := agent.ParseFile(&evaluator.Evaluator{Self: a.Self}, args[0])
		if err != nil {
			return nil, exit.Failedf("", "%w", err)
		}
		return []agent.Found{{Definition: d, Problems: problems}}, nil
	}
	p, err := a.OpenOrOutside(cmd.Context())
	if err != nil {
		return nil, err
	}
	r := p.Agents()
	if len(args) == 0 {
		return r.All(), nil
	}
	if f, ok := r.Last(args[0]); ok {
		return []agent.Found{f}, nil
	}
	_, err = r.Get(args[0])
	return nil, notFound(err)
}

func isBad(all []agent.Problem) bool {
	return slices.ContainsFunc(all, func(p agent.Problem) bool { return !p.Warning })
}

func problemsOf(all []agent.Found) []agent.Problem {
	out := []agent.Problem{}
	for _, f := range all {
		out = append(out, f.Problems...)
	}
	return out
}

// summary lists all problems, or says that there are none.
func summary(all []agent.Found, bad bool) string {
	var b strings.Builder
	for _, p := range problemsOf(all) {
		fmt.Fprintln(&b, terminal.Printable(p.String()))
	}
	b.WriteString(hidden(all))
	if !bad {
		fmt.Fprintf(&b, "%s valid\n", oneline.Count(len(all), "agent"))
	}
	return b.String()
}

// hidden returns a line for each definition that hides others.
func hidden(all []agent.Found) string {
	var b strings.Builder
	for _, f := range all {
		if len(f.Hides) > 0 {
			fmt.Fprintf(&b, "note: %s hides %s\n", terminal.Printable(f.Path), terminal.Printable(strings.Join(f.Hides, ", ")))
		}
	}
	return b.String()
}

// verdict lists each field of a definition with its problems.
func verdict(f agent.Found) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s", terminal.Printable(f.Path), hidden([]agent.Found{f}))
	for _, field := range append([]string{""}, agent.Fields()...) {
		found := false
		for _, p := range f.Problems {
			if p.Field == field {
				kind := "error"
				if p.Warning {
					kind = "warning"
				}
				fmt.Fprintf(&b, "%-8s%-20s line %d: %s\n", kind, field, max(p.Line, 1), terminal.Printable(p.Message))
				found = true
			}
		}
		if !found && field != "" {
			fmt.Fprintf(&b, "%-8s%s\n", "ok", field)
		}
	}
	for _, p := range f.Problems {
		if p.Field != "" && !slices.Contains(agent.Fields(), p.Field) {
			fmt.Fprintf(&b, "%-8s%-20s line %d: %s\n", "error", terminal.Printable(p.Field), max(p.Line, 1), terminal.Printable(p.Message))
		}
	}
	if isBad(f.Problems) {
		fmt.Fprintf(&b, "next: correct the file, then coven agents validate %s\n", shellword.Word(f.Path))
	}
	return b.String()
}
