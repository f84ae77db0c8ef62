package grimoire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

func newGrimoiresValidate(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "validate [NAME|FILE...]", Short: "Find errors in workflows, prompts and workflow matchers",
		Long: `Find errors in workflows, prompts and workflow matchers. Without
arguments, check everything of this repository, of your configuration, and what
coven ships. A FILE has a slash in its name or ends with .yaml, .yml or .md; it may
be anywhere. A missing plugin is only a warning: it may exist where the workflow
runs.`,
		Example: `  coven grimoires validate
  coven grimoires validate implement
  coven grimoires validate drafts/careful.yaml`,
		ValidArgsFunction: completeNamesOrFiles(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := openFor(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			all, err := validate(p, args)
			if err == nil && p.Repo != nil {
				err = warnOfMissing(p, all)
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(checkedJSON(all))
			} else {
				err = printChecked(a, all)
			}
			if err == nil && slices.ContainsFunc(all, grimoires.Checked.Bad) {
				return exit.Status(exit.Failed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// openFor opens the repository. Outside of a repository, files are validated against the
// prompts of the user and those that coven ships.
func openFor(ctx context.Context, a *cli.App, args []string) (*project.Project, error) {
	p, err := a.Open(ctx)
	if errors.Is(err, worktree.ErrNotRepository) && len(args) > 0 && !slices.ContainsFunc(args, isName) {
		return project.Outside(a.Environment), nil
	}
	return p, err
}

// isName reports whether an argument of validate names a grimoire or a prompt rather than a
// file.
func isName(arg string) bool {
	return filepath.Base(arg) == arg && !slices.Contains([]string{".yaml", ".yml", ".md"}, filepath.Ext(arg))
}

// validate checks the named grimoires, prompts and files, or all of them.
func validate(p *project.Project, args []string) ([]grimoires.Checked, error) {
	if len(args) == 0 {
		return p.Library.Validate()
	}
	var all []grimoires.Checked
	for _, arg := range args {
		found, err := validateOne(p, arg)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if !slices.ContainsFunc(all, func(other grimoires.Checked) bool { return other.File == c.File && len(c.Problems) == 0 }) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

func validateOne(p *project.Project, arg string) ([]grimoires.Checked, error) {
	if isName(arg) {
		found, err := p.Library.ValidateName(arg)
		return found, unknownGrimoire(err)
	}
	file, err := p.Env.Absolute(arg)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Failedf("coven grimoires list", "%w", err)
	}
	return p.Library.ValidateFile(arg, data)
}

// warnOfMissing adds warnings about plugins that are not installed, and agents that are not defined.
func warnOfMissing(proj *project.Project, all []grimoires.Checked) error {
	r, err := proj.Registry()
	if err != nil {
		return err
	}
	agents := proj.Agents()
	for i := range all {
		c := &all[i]
		for _, use := range c.Plugins {
			if use.Kind == grimoires.UseAgent {
				if _, err := agents.Get(use.Name); err != nil {
					c.Problems = append(c.Problems, warning(c.File, use, err.Error(), ""))
				}
				continue
			}
			kind := plugins.Kind(use.Kind)
			if slices.Contains(r.Names(kind), use.Name) {
				continue
			}
			_, err := r.Find(kind, use.Name)
			unknown := (*pluginregistry.UnknownError)(nil)
			if !errors.As(err, &unknown) {
				continue // the lock is wrong: coven plugins verify
			}
			c.Problems = append(c.Problems, warning(c.File, use, unknown.Missing(), unknown.Hint))
		}
		slices.SortStableFunc(c.Problems, func(a, b grimoires.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
	}
	return nil
}

func warning(file string, use grimoires.Use, msg, hint string) grimoires.Problem {
	p := grimoires.Problem{Warning: true}
	p.File, p.Line, p.Column, p.Msg, p.Hint = file, use.Line, use.Column, msg, hint
	return p
}

// completeNamesOrFiles completes names; the shell completes files.
func completeNamesOrFiles(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, _ := a.CompleteWords(cli.GrimoireNames)(cmd, args, typed)
		return found, cobra.ShellCompDirectiveDefault
	}
}

// printChecked prints a line for each problem and for each file without problems.
func printChecked(a *cli.App, all []grimoires.Checked) error {
	errs, warnings := 0, 0
	for _, c := range all {
		if len(c.Problems) == 0 {
			if err := a.Printf("%s: fine\n", terminal.Printable(c.File)); err != nil {
				return err
			}
		}
		for _, p := range c.Problems {
			if p.Warning {
				warnings++
			} else {
				errs++
			}
			if err := a.Printf("%s\n", terminal.Printable(problemText(p))); err != nil {
				return err
			}
		}
	}
	return a.Printf("%s, %s, %s\n", oneline.Count(len(all), "file"), oneline.Count(errs, "error"), oneline.Count(warnings, "warning"))
}

// problemText returns path:line:column: error: message (hint).
func problemText(p grimoires.Problem) string {
	text := fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, severity(p), oneline.Of(p.Msg))
	if p.Hint != "" {
		text += " (" + oneline.Of(p.Hint) + ")"
	}
	return text
}

func severity(p grimoires.Problem) string {
	if p.Warning {
		return "warning"
	}
	return "error"
}

// fileJSON is a file as grimoires validate --json prints it.
type fileJSON struct {
	Kind     string        `json:"kind"`
	Name     string        `json:"name,omitempty"`
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Problems []problemJSON `json:"problems"`
}

type problemJSON struct {
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func checkedJSON(all []grimoires.Checked) []fileJSON {
	files := []fileJSON{}
	for _, c := range all {
		f := fileJSON{Kind: c.Kind, Name: c.Name, File: c.File, OK: !c.Bad(), Problems: []problemJSON{}}
		for _, p := range c.Problems {
			f.Problems = append(f.Problems, problemJSON{p.Line, p.Column, severity(p), p.Msg, p.Hint})
		}
		files = append(files, f)
	}
	return files
}
