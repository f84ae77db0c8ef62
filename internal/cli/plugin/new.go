package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/project/scaffold"
	"github.com/coven-run/coven/plugins"
)

func newPluginsNew(a *cli.App) *cobra.Command {
	lang := "go"
	cmd := &cobra.Command{
		Use: "new KIND NAME", Short: "Write the project of a new plugin",
		Long: `Write a plugin that builds and passes the conformance tests to the new directory
coven-KIND-NAME, with a README and its tests, to be changed into yours.

The kinds are ` + strings.Join(kindNames(), ", ") + `. In Go, coven writes any of them; in
Python and Node.js, reviewers and arbiters. For other languages: coven plugins proto.`,
		Example: `  coven plugins new reviewer todo
  coven plugins new arbiter patience --lang python`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kindNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := scaffold.Plugin(plugins.Kind(args[0]), args[1], lang)
			if err != nil {
				return err
			}
			return writePlugin(a, p)
		},
	}
	cmd.Flags().StringVar(&lang, "lang", lang, "the `LANGUAGE` of its code: "+strings.Join(scaffold.Langs(), ", "))
	cli.CompleteFlag(cmd, "lang", cli.CompleteList(scaffold.Langs()...))
	return cmd
}

// writePlugin writes a project to a new directory, and prints its files and the commands
// that build and test it.
func writePlugin(a *cli.App, p *scaffold.Project) error {
	dir, err := a.Absolute(p.Name)
	if err != nil {
		return err
	}
	if err := scaffold.Create(dir, p.Files); err != nil {
		return err
	}
	for _, f := range p.Files {
		if err := a.Printf("wrote  %s/%s\n", p.Name, f.Path); err != nil {
			return err
		}
	}
	return a.Printf("\nTo build and test it:\n  cd %s\n  %s\n", p.Name, strings.Join(p.Commands, "\n  "))
}
