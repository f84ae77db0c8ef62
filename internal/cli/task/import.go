package task

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/proposal"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

func newTaskImport(a *cli.App) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "import TASK",
		Short: "Add the tasks that an agent proposed for a task",
		Long: `Add the tasks that an agent proposed in its last session for TASK: the list "tasks"
in the outputs of its result, which the grimoire spec-to-tasks produces. Each task
gets the label from:TASK; a task with the same label and title is not added again. A
list with labels that begin with grimoire: or from: is refused: only you may set
these. Prints the ids, one per line, in the order of the list.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error { return importTasks(cmd.Context(), a, args[0], dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the tasks without adding them")
	return cmd
}

func importTasks(ctx context.Context, a *cli.App, name string, dry bool) error {
	p, err := a.Open(ctx)
	if err != nil {
		return err
	}
	id, all, err := proposal.Of(ctx, p, name)
	if err != nil {
		return err
	}
	if dry {
		return printProposals(a, all)
	}
	return proposal.Import(ctx, p, id, all, func(id string) error { return a.Printf("%s\n", id) })
}

func printProposals(a *cli.App, all []proposal.Proposal) error {
	var b strings.Builder
	for i, p := range all {
		fmt.Fprintf(&b, "%d. %s", i+1, terminal.Printable(oneline.Of(p.Title)))
		if len(p.After) > 0 {
			fmt.Fprintf(&b, " (after %s)", strings.Trim(fmt.Sprint(p.After), "[]"))
		}
		fmt.Fprintf(&b, "\n   P%d %s", p.PriorityOrDefault(), cmp.Or(p.Type, "task"))
		if len(p.Labels) > 0 {
			fmt.Fprintf(&b, ", %s", strings.Join(p.Labels, ", "))
		}
		b.WriteString("\n")
		if p.Description != "" {
			fmt.Fprintf(&b, "   %s\n", terminal.Printable(oneline.Of(p.Description)))
		}
		for _, criterion := range p.Acceptance {
			fmt.Fprintf(&b, "   - %s\n", terminal.Printable(oneline.Of(criterion)))
		}
	}
	return a.Printf("%s", b.String())
}
