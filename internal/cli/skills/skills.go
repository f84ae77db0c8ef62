// Package skills holds the commands about skills.
package skills

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent/skill"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/oneline"
)

// NewSkills returns the command coven skills.
func NewSkills(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "skills", Short: "List and show the skills that agents can have",
		Long: `List and show skills: instructions for a kind of work, which agents read when they have such
work. An agent has those that its definition lists under skills.`,
	}, newList(a), newShow(a))
}

// load reads the skills, and warns of files that are not valid.
func load(cmd *cobra.Command, a *cli.App) ([]skill.Skill, error) {
	p, err := a.OpenOrOutside(cmd.Context())
	if err != nil {
		return nil, err
	}
	all, problems := p.Skills()
	for _, problem := range problems {
		fmt.Fprintf(a.Err, "warning: %s\n", terminal.Printable(oneline.Of(problem.Error()))) //nolint:errcheck // standard error
	}
	return all, nil
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the skills", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := load(cmd, a)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.PrintJSON(append([]skill.Skill{}, all...))
			case len(all) == 0:
				return a.Printf("no skills: see coven help skill\n")
			}
			return cli.PrintTable(a, "", all, func(s skill.Skill) string {
				text := oneline.Clip(s.Description, 80)
				if len(s.Hides) > 0 {
					text += fmt.Sprintf(" (hides: %s)", strings.Join(s.Hides, ", "))
				}
				return fmt.Sprintf("%s\t%s\t%s", s.Name, terminal.Printable(s.Path), terminal.Printable(text))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shown is a skill as skills show --json prints it.
type shown struct {
	skill.Skill
	Body string `json:"body"`
}

func newShow(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a skill", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteWords(names),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := load(cmd, a)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(s skill.Skill) bool { return s.Name == skill.Name(args[0]) })
			if i < 0 {
				return exit.Failedf("coven skills list", "there is no skill %q%s", args[0], didyoumean.Aside(args[0], named(all)))
			}
			if asJSON {
				return a.PrintJSON(shown{all[i], all[i].Body})
			}
			return a.Printf("%s  %s\n%s\n\n%s\n", all[i].Name, terminal.Printable(all[i].Path), terminal.Printable(all[i].Description), terminal.PrintableLines(all[i].Body))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func names(_ context.Context, p *project.Project, _ []string) []string {
	all, _ := p.Skills()
	return named(all)
}

func named(all []skill.Skill) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}
