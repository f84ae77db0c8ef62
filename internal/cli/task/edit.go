package task

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// editOptions are the flags of coven task edit.
type editOptions struct {
	title, description, design string
	accept, labels             []string
	priority                   int
}

func newTaskEdit(a *cli.App) *cobra.Command {
	var o editOptions
	cmd := &cobra.Command{
		Use:   "edit TASK",
		Short: "Change a task's text, priority or labels",
		Long: `Change a task's text, priority or labels. Without flags, on a terminal, you edit the title and the
description in your editor. Flags that are not given change nothing; a text of "" removes it. A
session that has begun keeps the text with which it began: for a blocked one,
coven retry TASK --new-settings takes the new text.`,
		Example: `  coven task edit bd-12 -d "Only the web login, not the API"
  coven task edit bd-12 --accept "a wrong password is refused" --accept "so is an empty one"`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Tracked),
		RunE: func(cmd *cobra.Command, args []string) error {
			return editTask(cmd, a, args[0], o.edit(cmd))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.title, "title", "", "the title, as `TEXT`")
	f.StringVarP(&o.description, "description", "d", "", "what to do, as `TEXT`")
	f.StringArrayVar(&o.accept, "accept", nil, "an acceptance criterion, as `TEXT`, instead of the present ones (repeatable)")
	f.StringVar(&o.design, "design", "", "how to do it, as `TEXT`")
	f.IntVar(&o.priority, "priority", 0, "the priority `N`: 0 (most urgent) to 4")
	f.StringArrayVar(&o.labels, "label", nil, "a `LABEL`, instead of the present ones (repeatable)")
	for _, name := range []string{"description", "accept", "design", "label"} {
		cli.AllowEmpty(cmd, name)
	}
	cli.Once(cmd, "title", "description", "design")
	cli.CompleteFlag(cmd, "priority", cli.CompleteList("0", "1", "2", "3", "4"))
	return cmd
}

// edit returns the change that the flags describe.
func (o *editOptions) edit(cmd *cobra.Command) (e task.Edit) {
	given := cmd.Flags().Changed
	for name, set := range map[string]func(){
		"title":       func() { e.Title = &o.title },
		"description": func() { e.Description = &o.description },
		"design":      func() { e.Design = &o.design },
		"priority":    func() { e.Priority = &o.priority },
		"accept":      func() { e.Acceptance = new(filled(o.accept)) },
		"label":       func() { e.Labels = new(filled(o.labels)) },
	} {
		if given(name) {
			set()
		}
	}
	return e
}

// filled returns the values of a repeatable flag. A single empty one means none.
func filled(values []string) []string {
	if len(values) == 1 && values[0] == "" {
		return nil
	}
	return values
}

func editTask(cmd *cobra.Command, a *cli.App, name string, e task.Edit) error {
	ctx := cmd.Context()
	p, tracker, err := open(a, cmd)
	if err != nil {
		return err
	}
	var before task.Task
	err = p.NamedTask(ctx, name, func(id string) (err error) {
		before, err = tracker.Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if e != (task.Edit{}) {
		return edit(ctx, a, p, tracker, before, e)
	}
	if err := before.Usable(); err != nil {
		return err
	}
	d := cli.Draft{
		Text: joinText(before.Title, before.Description), Help: "Edit task " + before.ID + ". " + formHelp,
		Instead: "coven task edit " + shellword.Word(before.ID) + ` -d "..."`,
	}
	return a.EditText(ctx, p, d, func(text string) error {
		title, description := splitText(text)
		return edit(ctx, a, p, tracker, before, task.Edit{Title: &title, Description: &description})
	})
}

// formHelp explains the form of a task in an editor.
const formHelp = "The first line is the title, the rest the description."

// joinText returns the title and the description of a task as one text.
func joinText(title, description string) string {
	return strings.TrimRight(title+"\n\n"+description, "\n")
}

// splitText divides a text into its first line, which is the title of a task, and the rest.
func splitText(text string) (title, description string) {
	title, description, _ = strings.Cut(text, "\n")
	return strings.TrimSpace(title), strings.TrimLeft(description, "\r\n")
}

// edit changes a task and reports the effect.
func edit(ctx context.Context, a *cli.App, p *project.Project, tracker task.Tracker, before task.Task, e task.Edit) error {
	t, err := tracker.Edit(ctx, before.ID, e)
	switch {
	case errors.Is(err, task.ErrInvalid) && exit.Next(err) == "":
		return exit.Usagef("coven task edit --help", "%w", err)
	case err != nil:
		return err
	case reflect.DeepEqual(t, before):
		return a.Printf("%s  unchanged\n", terminal.Printable(t.ID))
	}
	return a.Printf("%s  edited%s\n", terminal.Printable(t.ID), sessionEffect(p, t.ID))
}

// sessionEffect says that a session which has begun keeps the old text of its task.
func sessionEffect(p *project.Project, id string) string {
	v, err := p.Finder.OfTask(id)
	switch {
	case err != nil || !v.Live():
		return ""
	case v.Status == session.Blocked:
		return "; its session began with the old text\n  next: coven retry " + terminal.Printable(shellword.Word(id)) + " --new-settings"
	}
	return "; its session keeps the old text"
}
