package grimoire

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	runengine "github.com/coven-run/coven/runner/engine"
)

// NewPrompts returns the command coven prompts.
func NewPrompts(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "prompts", Short: "List prompts, and show what an agent would be told",
	}, newPromptsList(a), newPromptsRender(a))
}

func newPromptsList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the prompts that a step can name", Args: cobra.NoArgs,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			names, err := p.Library.PromptNames()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
			for _, name := range names {
				prompt, err := p.Library.Prompt(name)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\n", name, prompt.Source) //nolint:errcheck // Flush reports it
			}
			return cli.WriteError(w.Flush())
		}),
	}
}

func newPromptsRender(a *cli.App) *cobra.Command {
	var id string
	var inputs []string
	cmd := &cobra.Command{
		Use:   "render NAME --task TASK",
		Short: "Show what an agent would be told about a task",
		Long: `Show what an agent would be told about a task before any step has run. --input gives the
inputs that the steps of a grimoire would give the prompt.`,
		Example: `  coven prompts render implement --task app-7
  coven prompts render fix-tests --task app-7 --input output="FAIL TestLogin"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteOne(promptNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if id == "" {
				return exit.Usagef("coven task list", "missing --task: coven prompts render NAME --task TASK")
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			given, err := parseInputs(inputs)
			if err != nil {
				return err
			}
			text, err := render(cmd.Context(), p, args[0], id, given)
			if err != nil {
				return err
			}
			return a.Printf("%s", text)
		},
	}
	cmd.Flags().StringVar(&id, "task", "", "the `TASK` that the prompt is about")
	cmd.Flags().StringArrayVar(&inputs, "input", nil, "an input of the prompt, as `NAME=TEXT`; may be repeated")
	cli.CompleteFlag(cmd, "task", a.CompleteTaskFlag(cli.Tracked))
	return cmd
}

// parseInputs returns the inputs in the values of --input.
func parseInputs(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, one := range given {
		name, text, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("coven prompts render --help", "--input %s: it must be NAME=TEXT", terminal.Printable(one))
		}
		all[name] = text
	}
	return all, nil
}

// render renders a prompt as the first step of a new session of the task would.
func render(ctx context.Context, p *project.Project, name, id string, inputs map[string]string) (string, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return "", err
	}
	var t task.Task
	err = p.NamedTask(ctx, id, func(id string) (err error) {
		t, err = tracker.Get(ctx, id)
		return err
	})
	if err != nil {
		return "", err
	}
	g := &grimoires.Grimoire{Name: "render", Steps: []grimoires.Step{{Name: "render", Kind: &grimoires.Agent{Prompt: name, Input: inputs}}}}
	plan, err := p.Library.Freeze(g, nil)
	if err != nil {
		return "", err
	}
	plan.Task = project.PlanTask(t)
	if prior, err := p.Finder.OfTask(t.ID); err == nil && p.Config.PriorAttempt {
		plan.Attempt = control.AttemptText(prior)
	}
	given := map[string]any{}
	for key, text := range inputs {
		given[key] = text
	}
	return plan.RenderPrompt(name, runengine.NewState(nil, plan, runengine.Options{}).Data(given))
}

// promptNames returns the prompts of a project.
func promptNames(_ context.Context, p *project.Project, _ []string) []string {
	names, _ := p.Library.PromptNames()
	return names
}
