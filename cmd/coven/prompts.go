package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/session"
	runengine "github.com/coven-run/coven/runner/engine"
)

func newPrompts(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prompts", Short: "List prompts, and show what an agent would be told",
		Args: noCommand, RunE: showHelp, SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newPromptsList(a), newPromptsRender(a))
	return cmd
}

func newPromptsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the prompts that a step can name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			names, err := h.library.PromptNames()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			for _, name := range names {
				prompt, err := h.library.Prompt(name)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\n", name, prompt.Source) //nolint:errcheck // Flush reports it
			}
			return written(w.Flush())
		},
	}
}

func newPromptsRender(a *app) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:               "render NAME --task ID",
		Short:             "Show what an agent would be told about a task, before any step has run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWords(promptNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			text, err := h.render(cmd.Context(), args[0], id)
			if err != nil {
				return err
			}
			return a.say("%s", text)
		},
	}
	cmd.Flags().StringVar(&id, "task", "", "the task that the prompt is about")
	completeFlag(cmd, "task", a.completeTaskFlag(tracked))
	return cmd
}

// render renders a prompt as the first step of a new session of the task would.
func (h *house) render(ctx context.Context, name, id string) (string, error) {
	tracker, err := h.tasks()
	if err != nil {
		return "", err
	}
	t, err := tracker.Get(ctx, id)
	if err != nil {
		return "", err
	}
	g := &grimoires.Grimoire{Name: "render", Steps: []grimoires.Step{{Name: "render", Agent: &grimoires.Agent{Prompt: name}}}}
	plan, err := h.library.Freeze(g, nil)
	if err != nil {
		return "", err
	}
	plan.Task = planTask(t)
	if prior, err := session.OfTask(h.repo.Root, t.ID); err == nil && h.config.PriorAttempt {
		plan.Attempt = attemptText(prior)
	}
	return plan.RenderPrompt(name, runengine.NewState(nil, plan, runengine.Options{}).Data(nil))
}

// promptNames are for the one argument that names a prompt.
func promptNames(_ context.Context, h *house, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	names, _ := h.library.PromptNames()
	return names
}
