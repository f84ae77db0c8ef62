// Package task implements coven task, which adds, lists, edits and closes tasks of the tracker.
package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
)

// NewTask returns the command coven task.
func NewTask(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "task",
		Short: "Work with the repository's tasks",
		Long: `Work with beads tasks: those of bd if the repository uses it, otherwise those in
.beads/issues.jsonl. The first task creates that file; nothing else has to be
installed.`,
	}, newTaskAdd(a), newTaskImport(a), newTaskList(a), newTaskReady(a), newTaskShow(a), newTaskEdit(a), newTaskClose(a))
}

func newTaskAdd(a *cli.App) *cobra.Command {
	var n task.New
	cmd := &cobra.Command{
		Use:   "add [TITLE]",
		Short: "Add a task and print its id",
		Long: `Add a task and print its id. Without TITLE, on a terminal, you write it in your editor: the first
line is the title, the rest the description. If TITLE is -, standard input has this form.`,
		Example: `  coven task add "Fix the login bug" --accept "a wrong password is refused"
  coven task add "Write the release notes" --after bd-12 --priority 1
  coven task add - < issue.md
  coven run "$(coven task add "Fix the typo in README.md" --type chore)"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return addInEditor(cmd, a, n)
			}
			text, err := a.TextArgument(cmd, args[0])
			if err != nil {
				return err
			}
			if n.Title = text; text != args[0] {
				title, rest := splitText(text)
				if rest != "" && n.Description != "" {
					return exit.Usagef(cmd.CommandPath()+" --help", "the description is given twice: with --description, and after the title on standard input")
				}
				n.Title, n.Description = title, n.Description+rest
			}
			p, tracker, err := open(a, cmd)
			if err != nil {
				return err
			}
			return add(cmd, a, p, tracker, n)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&n.Description, "description", "d", "", "what to do, as `TEXT`")
	f.StringArrayVar(&n.Acceptance, "accept", nil, "an acceptance criterion, as `TEXT` (repeatable)")
	f.IntVar(&n.Priority, "priority", 2, "the priority `N`: 0 (most urgent) to 4")
	f.StringArrayVar(&n.Labels, "label", nil, "a `LABEL` (repeatable)")
	f.StringArrayVar(&n.After, "after", nil, "a `TASK` to complete first (repeatable)")
	f.StringVar(&n.Type, "type", "task", "the `TYPE`: "+strings.Join(task.Types(), ", "))
	cli.AllowEmpty(cmd, "description")
	cli.Once(cmd, "description")
	cli.CompleteFlag(cmd, "type", cli.CompleteList(task.Types()...))
	cli.CompleteFlag(cmd, "priority", cli.CompleteList("0", "1", "2", "3", "4"))
	cli.CompleteFlag(cmd, "after", a.CompleteTaskFlag(cli.Tracked))
	return cmd
}

// addInEditor lets the user write a new task.
func addInEditor(cmd *cobra.Command, a *cli.App, n task.New) error {
	p, tracker, err := open(a, cmd)
	if err != nil {
		return err
	}
	d := cli.Draft{Text: joinText(n.Title, n.Description), Help: "Describe the new task. " + formHelp, Instead: `coven task add "..."`}
	return a.EditText(cmd.Context(), p, d, func(text string) error {
		n.Title, n.Description = splitText(text)
		return add(cmd, a, p, tracker, n)
	})
}

// add adds a task and prints its ID.
func add(cmd *cobra.Command, a *cli.App, p *project.Project, tracker task.Tracker, n task.New) error {
	t, err := tracker.Add(cmd.Context(), n)
	if errors.Is(err, task.ErrNotFound) { // one of After may be the beginning of an id
		if n.After, err = p.ResolveAll(cmd.Context(), n.After); err == nil {
			t, err = tracker.Add(cmd.Context(), n)
		}
	}
	if errors.Is(err, task.ErrInvalid) && exit.Next(err) == "" {
		return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
	}
	if err != nil {
		return err
	}
	return a.Printf("%s\n", t.ID)
}

func newTaskList(a *cli.App) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tasks that are not closed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, tracker, err := open(a, cmd)
			if err != nil {
				return err
			}
			tasks, err := tracker.List(cmd.Context())
			if err != nil {
				return err
			}
			return printTasks(a, openTasks(tasks, all), task.WaitingIn(tasks, a.Now()), asJSON)
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
			_, tracker, err := open(a, cmd)
			if err != nil {
				return err
			}
			tasks, err := tracker.Ready(cmd.Context())
			if err != nil {
				return err
			}
			return printTasks(a, tasks, nil, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTaskShow(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show TASK", Short: "Show a task", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Tracked),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, tracker, err := open(a, cmd)
			if err != nil {
				return err
			}
			var t task.Task
			err = p.NamedTask(cmd.Context(), args[0], func(id string) (err error) {
				t, err = tracker.Get(cmd.Context(), id)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(t)
			}
			all, err := tracker.List(cmd.Context())
			if err != nil {
				return err
			}
			return a.Printf("%s", taskText(t, all, a.Now()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTaskClose(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "close TASK", Short: "Close a task", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Tracked),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, tracker, err := open(a, cmd)
			if err != nil {
				return err
			}
			var closed task.Task
			err = p.NamedTask(cmd.Context(), args[0], func(id string) (err error) {
				closed, err = tracker.Close(cmd.Context(), id, "", reason)
				return err
			})
			if err != nil {
				return err
			}
			return a.Printf("%s closed\n", terminal.Printable(closed.ID))
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "closed by hand", "why, as `TEXT`")
	cli.Once(cmd, "reason")
	return cmd
}

// open opens the user's repository and its tracker.
func open(a *cli.App, cmd *cobra.Command) (*project.Project, task.Tracker, error) {
	p, err := a.Open(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	tracker, err := p.Tasks()
	return p, tracker, err
}

// printTasks prints tasks. Those that are in waiting, too, name a task that they wait for.
func printTasks(a *cli.App, tasks []task.Task, waiting []task.Waiting, asJSON bool) error {
	if asJSON {
		if tasks == nil {
			tasks = []task.Task{}
		}
		return a.PrintJSON(tasks)
	}
	after := map[string]string{}
	for _, w := range waiting {
		after[w.ID] = "  (after " + terminal.Clip(w.For[0], 40) + more(len(w.For)-1) + ")"
	}
	return cli.PrintTable(a, "", tasks, func(t task.Task) string {
		return fmt.Sprintf("%s\tP%d\t%s\t%s%s", terminal.Clip(t.ID, 40), t.Priority, t.Status, terminal.Clip(t.Title, 80), after[t.ID])
	})
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// taskText describes a task for people, with the tasks among all that block it or that it blocks.
func taskText(t task.Task, all []task.Task, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  P%d %s %s\n%s\n", terminal.Printable(t.ID), t.Priority, t.Type, t.Status, terminal.Printable(t.Title))
	if len(t.Labels) > 0 {
		fmt.Fprintf(&b, "labels: %s\n", terminal.Printable(strings.Join(t.Labels, ", ")))
	}
	blockers, dependents := task.Links(all, t.ID, now)
	b.WriteString(linkText("waits for", blockers, all) + linkText("blocks", dependents, all))
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

// linkText lists tasks with their states and titles. A task of another tracker has none.
func linkText(head string, ids []string, all []task.Task) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%s: %s", head, terminal.Printable(id))
		if i := slices.IndexFunc(all, func(t task.Task) bool { return t.ID == id }); i >= 0 {
			fmt.Fprintf(&b, "  %s  %s", terminal.Printable(all[i].Status), terminal.Clip(all[i].Title, 80))
		}
		b.WriteString("\n")
	}
	return b.String()
}
