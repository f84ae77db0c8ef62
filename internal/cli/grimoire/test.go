package grimoire

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/runner/workflowtest"
)

func newGrimoiresTest(a *cli.App) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "test [NAME...]", Short: "Test workflows with stubbed steps: no agents, no tokens",
		Long: `Run workflows with the stubs of their test files, NAME.test.yaml next to NAME.yaml:
no agent, command or worktree is used. Each test must take the path it expects;
steps and branches that no test reaches are listed. Without NAME: every workflow
that has tests.`,
		Example: `  coven grimoires test
  coven grimoires test careful --strict`,
		ValidArgsFunction: a.CompleteOne(cli.GrimoireNames),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			reports, err := TestAll(cmd.Context(), p, args)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(reports)
			} else {
				err = printTested(a, reports)
			}
			if err == nil && hasFailed(reports, strict) {
				return exit.Status(exit.Failed)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if no test reaches a branch")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// TestReport contains the results of the tests of one grimoire.
type TestReport struct {
	Grimoire string                 `json:"grimoire"`
	File     string                 `json:"file"`
	Tests    []workflowtest.Outcome `json:"tests"`
	Missing  []workflowtest.Missing `json:"missing"`
	Reached  int                    `json:"reached"`
	Ways     int                    `json:"ways"`
}

// TestAll runs the tests of the named grimoires, or all tests.
func TestAll(ctx context.Context, p *project.Project, names []string) ([]TestReport, error) {
	named := len(names) > 0
	if !named {
		var err error
		if names, err = p.Library.Names(); err != nil {
			return nil, err
		}
	}
	all := []TestReport{}
	for _, name := range names {
		text, label, err := p.Library.Tests(name)
		switch {
		case err != nil:
			return nil, err
		case label == "" && named:
			if _, err := p.Library.Load(name); err != nil {
				return nil, unknownGrimoire(err)
			}
			return nil, exit.Failedf("coven grimoires test --help", "the grimoire %s has no tests: there is no %s.test.yaml beside it", name, name)
		case label == "":
			continue
		}
		r, err := testOne(ctx, p, name, label, text)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func testOne(ctx context.Context, p *project.Project, name, label string, text []byte) (TestReport, error) {
	r := TestReport{Grimoire: name, File: label, Tests: []workflowtest.Outcome{}, Missing: []workflowtest.Missing{}}
	g, err := p.Library.Load(name)
	if err != nil {
		return r, err
	}
	suite, err := workflowtest.Read(label, text, g)
	if err != nil {
		return r, err
	}
	plan, err := p.Library.Freeze(g, nil)
	if err != nil {
		return r, err
	}
	plan.Model, plan.Provider, plan.Target = project.ModelOf(p.Config.Provider, p.Config), p.Config.Provider, "refs/heads/main"
	covered := workflowtest.NewCoverage()
	for _, t := range suite.Tests {
		r.Tests = append(r.Tests, t.Run(ctx, plan, covered))
	}
	missing, reached, ways := covered.Missing(g)
	r.Missing, r.Reached, r.Ways = append(r.Missing, missing...), reached, ways
	return r, nil
}

func hasFailed(reports []TestReport, strict bool) bool {
	for _, r := range reports {
		if strict && len(r.Missing) > 0 {
			return true
		}
		for _, t := range r.Tests {
			if len(t.Faults) > 0 {
				return true
			}
		}
	}
	return false
}

// printTested prints the results of tests.
func printTested(a *cli.App, reports []TestReport) error {
	if len(reports) == 0 {
		return a.Printf("no workflow has tests: write NAME.test.yaml beside NAME.yaml\n  next: coven grimoires test --help\n")
	}
	var b strings.Builder
	for _, r := range reports {
		failed := 0
		for _, t := range r.Tests {
			mark := "ok  "
			if len(t.Faults) > 0 {
				mark, failed = "FAIL", failed+1
			}
			fmt.Fprintf(&b, "%s  %s: %s\n", mark, r.Grimoire, t.Test)
			for _, f := range t.Faults {
				fmt.Fprintf(&b, "    %s\n", f)
			}
		}
		for _, m := range r.Missing {
			fmt.Fprintf(&b, "      %s: %s %s\n", r.Grimoire, m.Step, m.What)
		}
		fmt.Fprintf(&b, "%s: %d tests, %d failed; %d of %d branches reached\n", r.Grimoire, len(r.Tests), failed, r.Reached, r.Ways)
	}
	return a.Printf("%s", terminal.PrintableLines(b.String()))
}
