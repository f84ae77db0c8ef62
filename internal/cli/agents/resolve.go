package agents

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// resolvedJSON is an answer as agents resolve --json prints it.
type resolvedJSON struct {
	Agent      string            `json:"agent"`
	By         string            `json:"by"` // rule, score or default
	Reason     string            `json:"reason"`
	Skipped    []string          `json:"skipped"` // rules whose agent cannot be used
	Candidates []agent.Candidate `json:"candidates"`
}

func newResolve(a *cli.App) *cobra.Command {
	var asJSON, explain bool
	cmd := &cobra.Command{
		Use: "resolve PROMPT", Short: "Name the agent for a task",
		Long: `Name the agent for a task: that of the first rule of routing in the configuration that
matches the text of the task; or else the one whose name, keywords, capabilities, domain
and description have the most words in common with it; or else default_agent.`,
		Example: `  coven agents resolve "Fix the login bug"
  coven agents resolve --explain "Write tests for the parser"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, r, err := open(cmd.Context(), a)
			if err != nil {
				return err
			}
			found, err := resolve(r, p.Config, args[0])
			switch {
			case err != nil:
				return notFound(err)
			case asJSON:
				return a.PrintJSON(found)
			case explain:
				return a.Printf("%s", found.page())
			}
			return a.Printf("%s\n", found.Agent)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&explain, "explain", false, "also print why, and which other agents suit the task")
	return cmd
}

// resolve finds the agent for a task. A rule whose agent cannot be used is skipped; a default
// that cannot be used is an error.
func resolve(r *agent.Registry, cfg config.Config, task string) (resolvedJSON, error) {
	found := resolvedJSON{Skipped: []string{}, Candidates: r.Candidates(task)}
	if found.Candidates == nil {
		found.Candidates = []agent.Candidate{}
	}
	for _, route := range cfg.Routing {
		if !route.Matches(task) {
			continue
		}
		d, err := r.Get(route.Agent)
		if err != nil {
			found.Skipped = append(found.Skipped, fmt.Sprintf("%q: %v", route.Match, err))
			continue
		}
		found.Agent, found.By, found.Reason = d.Name, "rule", fmt.Sprintf("the task matches the rule %q", route.Match)
		return found, nil
	}
	if len(found.Candidates) > 0 && found.Candidates[0].Suits() {
		best := found.Candidates[0]
		found.Agent, found.By, found.Reason = best.Agent, "score", "the definition has "+strings.Join(best.Words, ", ")
		return found, nil
	}
	d, err := r.Get(cmp.Or(cfg.DefaultAgent, config.Default().DefaultAgent)) // outside a repository there are no settings
	found.Agent, found.By, found.Reason = d.Name, "default", "no other suits the task: this is default_agent"
	return found, err
}

// page returns the output of agents resolve --explain.
func (f resolvedJSON) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nwhy: %s\n", f.Agent, terminal.Printable(oneline.Of(f.Reason)))
	for _, skipped := range f.Skipped {
		fmt.Fprintf(&b, "skipped: %s\n", terminal.Printable(oneline.Of(skipped)))
	}
	for _, c := range f.Candidates {
		fmt.Fprintf(&b, "%4d  %s: %s\n", c.Score, c.Agent, terminal.Printable(strings.Join(c.Words, ", ")))
	}
	return b.String()
}
