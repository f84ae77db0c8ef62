// Package task is coven task: it adds, lists and closes tasks of the tracker.
package task

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
)

// NewTask returns the command coven task.
func NewTask(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Work with the repository's tasks",
		Long: `Work with beads tasks: those of bd if the repository uses it, otherwise those in
.beads/issues.jsonl. The first task creates that file; nothing else has to be
installed.`,
		Args: cli.NoCommand, RunE: cli.ShowHelp, SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newTaskAdd(a), newTaskImport(a), newTaskList(a), newTaskReady(a), newTaskShow(a), newTaskClose(a))
	return cmd
}

func newTaskAdd(a *cli.App) *cobra.Command {
	var n task.New
	cmd := &cobra.Command{
		Use:   "add TITLE",
		Short: "Add a task; prints its id alone on a line",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tracker, err := tracker(a, cmd)
			if err != nil {
				return err
			}
			n.Title = args[0]
			t, err := tracker.Add(cmd.Context(), n)
			if err != nil {
				return err
			}
			return a.Printf("%s\n", t.ID)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&n.Description, "description", "d", "", "what to do")
	f.StringArrayVar(&n.Acceptance, "accept", nil, "an acceptance criterion (repeatable)")
	f.IntVar(&n.Priority, "priority", 2, "0 (most urgent) to 4")
	f.StringArrayVar(&n.Labels, "label", nil, "a label (repeatable)")
	f.StringArrayVar(&n.After, "after", nil, "the `ID` of a task to complete first (repeatable)")
	f.StringVar(&n.Type, "type", "task", "task, bug, feature, chore or epic")
	cli.CompleteFlag(cmd, "type", cli.CompleteList("task", "bug", "feature", "chore", "epic"))
	cli.CompleteFlag(cmd, "priority", cli.CompleteList("0", "1", "2", "3", "4"))
	cli.CompleteFlag(cmd, "after", a.CompleteTaskFlag(cli.Tracked))
	return cmd
}

func newTaskList(a *cli.App) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tasks that are not closed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tracker, err := tracker(a, cmd)
			if err != nil {
				return err
			}
			tasks, err := tracker.List(cmd.Context())
			if err != nil {
				return err
			}
			return printTasks(a, openTasks(tasks, all), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "list closed tasks too")
	return cmd
}

// openTasks returns the tasks that are not closed, or all tasks.
func openTasks(tasks []task.Task, all bool) []task.Task {
	kept := []task.Task{}
	for _, t := range tasks {
		if all || t.Status != "closed" {
			kept = append(kept, t)
		}
	}
	return kept
}

func newTaskReady(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ready", Short: "List the tasks that are ready to run, in order", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tracker, err := tracker(a, cmd)
			if err != nil {
				return err
			}
			tasks, err := tracker.Ready(cmd.Context())
			if err != nil {
				return err
			}
			return printTasks(a, tasks, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTaskShow(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a task", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Tracked),
		RunE: func(cmd *cobra.Command, args []string) error {
			tracker, err := tracker(a, cmd)
			if err != nil {
				return err
			}
			t, err := tracker.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(t)
			}
			return a.Printf("%s", taskText(t))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTaskClose(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "close ID", Short: "Close a task", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Tracked),
		RunE: func(cmd *cobra.Command, args []string) error {
			tracker, err := tracker(a, cmd)
			if err != nil {
				return err
			}
			if _, err := tracker.Close(cmd.Context(), args[0], "", reason); err != nil {
				return err
			}
			return a.Printf("%s closed\n", args[0])
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "closed by hand", "why")
	return cmd
}

// tracker opens the tracker of the user's repository.
func tracker(a *cli.App, cmd *cobra.Command) (task.Tracker, error) {
	p, err := a.Open(cmd.Context())
	if err != nil {
		return nil, err
	}
	return p.Tasks()
}

func printTasks(a *cli.App, tasks []task.Task, asJSON bool) error {
	if asJSON {
		if tasks == nil {
			tasks = []task.Task{}
		}
		return a.PrintJSON(tasks)
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for _, t := range tasks {
		fmt.Fprintf(w, "%s\tP%d\t%s\t%s\n", terminal.Clip(t.ID, 40), t.Priority, t.Status, terminal.Clip(t.Title, 80)) //nolint:errcheck // Flush reports it
	}
	return cli.WriteError(w.Flush())
}

func taskText(t task.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  P%d %s %s\n%s\n", terminal.Printable(t.ID), t.Priority, t.Type, t.Status, terminal.Printable(t.Title))
	if len(t.Labels) > 0 {
		fmt.Fprintf(&b, "labels: %s\n", terminal.Printable(strings.Join(t.Labels, ", ")))
	}
	for _, part := range []struct{ head, text string }{
		{"Description", t.Description},
		{"Acceptance criteria", t.Acceptance},
		{"Design", t.Design},
		{"Notes", t.Notes},
		{"Closed", t.CloseReason},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", part.head, terminal.PrintableLines(part.text))
		}
	}
	return b.String()
}
