// Package grimoire holds the commands about workflows and prompts: grimoires and prompts.
package grimoire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewGrimoires returns the command coven grimoires.
func NewGrimoires(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "grimoires", Short: "List, show, validate, draw, test and backtest workflows",
	}, newGrimoiresList(a), newGrimoiresShow(a), newGrimoiresValidate(a), newGrimoiresGraph(a), newGrimoiresTest(a), newGrimoiresBacktest(a))
}

// entryJSON is a grimoire as grimoires list --json prints it.
type entryJSON struct {
	Name        string   `json:"name"`
	Source      string   `json:"source"`
	Description string   `json:"description"`
	Hides       []string `json:"hides"`
	Error       string   `json:"error,omitempty"`
}

func newGrimoiresList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List workflows, where they come from, and which others they hide", Args: cobra.NoArgs,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			entries, err := p.Library.Entries()
			if err != nil {
				return err
			}
			if asJSON {
				all := []entryJSON{}
				for _, e := range entries {
					all = append(all, entryJSON{e.Name, e.Source, e.Description, append([]string{}, e.Hides...), errorText(e.Err)})
				}
				return a.PrintJSON(all)
			}
			return cli.PrintTable(a, "", entries, func(e grimoires.Entry) string {
				return fmt.Sprintf("%s\t%s\t%s", e.Name, terminal.Printable(e.Source), terminal.Printable(entryText(e)))
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// entryText describes a grimoire, or reports that it is not valid.
func entryText(e grimoires.Entry) string {
	text := terminal.Clip(oneline.Of(e.Description), 80)
	if e.Err != nil {
		text = "NOT VALID: coven grimoires validate " + shellword.Word(e.Name)
	}
	if len(e.Hides) > 0 {
		text += fmt.Sprintf(" (hides: %s)", strings.Join(e.Hides, ", "))
	}
	return strings.TrimSpace(text)
}

func newGrimoiresShow(a *cli.App) *cobra.Command {
	var asJSON, source bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a workflow with every default filled in, or its file",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteOne(cli.GrimoireNames),
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, args []string) error {
			text, from, err := p.Library.Text(args[0])
			if err != nil {
				return unknownGrimoire(err)
			}
			if source && asJSON {
				return a.PrintJSON(map[string]string{"name": args[0], "source": from, "text": string(text)})
			}
			if source {
				return printText(a, text)
			}
			g, err := p.Library.Load(args[0])
			if err != nil {
				return err
			}
			if text, err = g.YAML(); err != nil {
				return err
			}
			if asJSON {
				return printYAML(a, text)
			}
			return printText(a, append([]byte("# "+terminal.Printable(from)+"\n"), text...))
		}),
	}
	cmd.Flags().BoolVar(&source, "source", false, "print the file's own text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printText prints a file. On a terminal it makes control characters visible.
func printText(a *cli.App, text []byte) error {
	if a.Interactive {
		text = []byte(terminal.PrintableLines(string(text)))
	}
	return a.Printf("%s", text)
}

// printYAML prints YAML as JSON.
func printYAML(a *cli.App, text []byte) error {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("read the grimoire again: %w", err)
	}
	return a.PrintJSON(value)
}

// unknownGrimoire adds the exit code and next command for a grimoire that does not exist.
func unknownGrimoire(err error) error {
	if errors.As(err, new(*grimoires.UnknownError)) {
		return exit.Failedf("coven grimoires list", "%w", err)
	}
	return err
}

func newGrimoiresGraph(a *cli.App) *cobra.Command {
	var asJSON bool
	var format string
	cmd := &cobra.Command{
		Use: "graph NAME", Short: "Draw a workflow: its steps, loops, conditions, and where failures lead",
		Long: `Draw a workflow: its steps, loops, conditions, and where failures lead. The output
is a Mermaid flowchart, which GitHub renders in Markdown, or DOT for Graphviz.`,
		Example: `  coven grimoires graph implement
  coven grimoires graph implement --format dot | dot -Tsvg > implement.svg`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteOne(cli.GrimoireNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(graphFormats, format) {
				return exit.Usagef("coven grimoires graph --help", "unknown --format %s (known: %s)", terminal.Printable(format), strings.Join(graphFormats, ", "))
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			g, err := p.Library.Load(args[0])
			switch {
			case err != nil:
				return unknownGrimoire(err)
			case asJSON:
				return a.PrintJSON(g.Graph())
			case format == "dot":
				return a.Printf("%s", terminal.PrintableLines(g.Graph().Dot()))
			}
			return a.Printf("%s", terminal.PrintableLines(g.Graph().Mermaid()))
		},
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "the `FORMAT`: mermaid or dot")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print nodes and edges as JSON")
	cli.CompleteFlag(cmd, "format", cli.CompleteList(graphFormats...))
	return cmd
}

var graphFormats = []string{"mermaid", "dot"}
