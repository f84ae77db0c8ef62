package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	runengine "github.com/coven-run/coven/runner/engine"
)

// proposal is a task as an agent proposes it: one of the list "tasks" in the outputs
// of its result.
type proposal struct {
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Acceptance  []string `json:"acceptance"`
	Priority    *int     `json:"priority"` // 2 unless given
	Labels      []string `json:"labels"`
	Type        string   `json:"type"`  // task unless given
	After       []int    `json:"after"` // numbers of earlier ones in the list, from 1
}

// proposedBy is the label of tasks that were proposed for another one.
const proposedBy = "from:"

// maxProposed is how many tasks a list may have.
const maxProposed = 100

// proposedTypes are the types that a task may be given.
func proposedTypes() []string { return []string{"task", "bug", "feature", "chore", "epic"} }

func newTaskImport(a *cli.App) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "import TASK",
		Short: "Add the tasks that an agent proposed for TASK (grimoire spec-to-tasks)",
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

func importTasks(ctx context.Context, a *cli.App, id string, dry bool) error {
	proj, err := a.Open(ctx)
	if err != nil {
		return err
	}
	v, err := proj.Find(id)
	if err != nil {
		return err
	}
	all, err := proposals(v)
	if err != nil {
		return err
	}
	if dry {
		return printProposals(a, all)
	}
	tracker, err := proj.Tasks()
	if err != nil {
		return err
	}
	known, err := tracker.List(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, p := range all {
		n := p.task(v.Task, ids)
		if ids[i] = imported(known, n); ids[i] == "" {
			t, err := tracker.Add(ctx, n)
			if err != nil {
				return fmt.Errorf("task %d of %d, %q (those before it are added; coven task import adds the rest): %w", i+1, len(all), p.Title, err)
			}
			ids[i] = t.ID
		}
		if err := a.Printf("%s\n", ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// imported is the ID of a task that was added before; empty: there is none.
func imported(known []task.Task, n task.New) string {
	for _, t := range known {
		if t.Title == n.Title && slices.Contains(t.Labels, n.Labels[0]) {
			return t.ID
		}
	}
	return ""
}

// task is the proposal as a tracker takes it; ids are those of the ones before.
func (p proposal) task(from string, ids []string) task.New {
	n := task.New{
		Title: p.Title, Description: p.Description, Acceptance: p.Acceptance, Priority: p.priority(), Type: p.Type,
		Labels: append([]string{proposedBy + from}, p.Labels...),
	}
	for _, number := range p.After {
		n.After = append(n.After, ids[number-1])
	}
	return n
}

func (p proposal) priority() int {
	if p.Priority == nil {
		return 2
	}
	return *p.Priority
}

// proposals are those of the last step of a session that made some, all of them
// valid.
func proposals(v session.View) ([]proposal, error) {
	events, err := session.Events(v.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(events) {
		var r runengine.Result
		if e.Type != event.StepCompleted || e.Decode(&r) != nil || r.Outputs["tasks"] == nil {
			continue
		}
		return readProposals(r.Outputs["tasks"])
	}
	return nil, exit.Failedf("coven run --grimoire spec-to-tasks "+shellword.Word(v.Task), "no agent proposed tasks for %s: no result has outputs.tasks", v.Task)
}

func readProposals(value any) ([]proposal, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the proposed tasks: %w", err)
	}
	var all []proposal
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("the agent's outputs.tasks is not a list of tasks: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the agent's outputs.tasks is empty")
	}
	if len(all) > maxProposed {
		return nil, fmt.Errorf("the agent's outputs.tasks has %d tasks, at most %d are allowed: tell the agent to propose fewer", len(all), maxProposed)
	}
	numbers := map[string]int{} // by title
	if len(text) > maxProposed*task.MaxText {
		return nil, fmt.Errorf("the agent's outputs.tasks has %d bytes: tell the agent to propose less", len(text))
	}
	for i := range all {
		p := &all[i]
		if p.Title = strings.TrimSpace(p.Title); p.Title == "" {
			return nil, fmt.Errorf("task %d of outputs.tasks has no title", i+1)
		}
		wrong := p.check(i)
		if other := numbers[p.Title]; wrong == "" && other > 0 {
			wrong = fmt.Sprintf("task %d has the same title", other)
		}
		if wrong != "" {
			return nil, fmt.Errorf("task %d of outputs.tasks, %q: %s", i+1, p.Title, wrong)
		}
		numbers[p.Title] = i + 1
	}
	return all, nil
}

// check says what is wrong about a proposal after earlier ones; empty: nothing.
func (p proposal) check(earlier int) string {
	switch {
	case len(p.Title)+len(p.Description)+len(strings.Join(p.Acceptance, "")) > task.MaxText:
		return fmt.Sprintf("it has more than %d bytes of text", task.MaxText)
	case terminal.Printable(p.Title) != p.Title:
		return "the title has control characters"
	case p.Priority != nil && (*p.Priority < 0 || *p.Priority > 4):
		return fmt.Sprintf("priority %d is not 0 to 4", *p.Priority)
	case p.Type != "" && !slices.Contains(proposedTypes(), p.Type):
		return fmt.Sprintf("type %q is not one of %s", p.Type, strings.Join(proposedTypes(), ", "))
	case slices.ContainsFunc(p.After, func(n int) bool { return n < 1 || n > earlier }):
		return "after must name earlier tasks by their numbers, from 1"
	}
	for _, label := range p.Labels {
		switch {
		case strings.TrimSpace(label) != label || label == "" || strings.Contains(label, ",") || terminal.Printable(label) != label:
			return fmt.Sprintf("label %q is empty, or has control characters, a comma, or spaces around it", label)
		case reserved(label):
			return fmt.Sprintf("label %q: only people may set labels that begin with %s or %s", label, project.GrimoireLabel, proposedBy)
		}
	}
	return ""
}

// reserved reports whether a label is one that coven acts upon.
func reserved(label string) bool {
	label = strings.ToLower(label)
	return strings.HasPrefix(label, project.GrimoireLabel) || strings.HasPrefix(label, proposedBy)
}

func printProposals(a *cli.App, all []proposal) error {
	var b strings.Builder
	for i, p := range all {
		fmt.Fprintf(&b, "%d. %s", i+1, terminal.Printable(oneline.Of(p.Title)))
		if len(p.After) > 0 {
			fmt.Fprintf(&b, " (after %s)", strings.Trim(fmt.Sprint(p.After), "[]"))
		}
		fmt.Fprintf(&b, "\n   P%d %s", p.priority(), cmp.Or(p.Type, "task"))
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
