// Package proposal reads the tasks that an agent proposes in its result, and adds them to the tracker.
package proposal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Proposal is a task proposed by an agent: an element of the list "tasks" in the outputs of its result.
type Proposal struct {
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Acceptance  []string `json:"acceptance"`
	Priority    *int     `json:"priority"` // default 2
	Labels      []string `json:"labels"`
	Type        string   `json:"type"`  // default task
	After       []int    `json:"after"` // numbers of earlier elements of the list, from 1
}

// proposedBy is the label of tasks that were proposed for another one.
const proposedBy = "from:"

// maxProposed is the maximum number of tasks that an agent may propose at once.
const maxProposed = 100

// Of returns the tasks that an agent proposed for the named task, all of them valid, and the ID of the
// named task.
func Of(ctx context.Context, p *project.Project, name string) (id string, all []Proposal, err error) {
	v, err := p.Find(ctx, name)
	if err != nil {
		return "", nil, err
	}
	all, err = proposals(v)
	return v.Task, all, err
}

// Import adds the tasks proposed for the task from to the tracker. It calls added with the ID of each, in
// order. It does not add a task again that was added before.
func Import(ctx context.Context, p *project.Project, from string, all []Proposal, added func(id string) error) error {
	tracker, err := p.Tasks()
	if err != nil {
		return err
	}
	known, err := tracker.List(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, p := range all {
		n := p.task(from, ids)
		if ids[i] = existingTask(known, n); ids[i] == "" {
			t, err := tracker.Add(ctx, n)
			if err != nil {
				return fmt.Errorf("add task %d of %d, %q: %w; the tasks before it are added, run coven task import again to add the rest", i+1, len(all), p.Title, err)
			}
			ids[i] = t.ID
		}
		if err := added(ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// existingTask returns the ID of the existing task for n, or "".
func existingTask(known []task.Task, n task.New) string {
	for _, t := range known {
		if t.Title == n.Title && slices.Contains(t.Labels, n.Labels[0]) {
			return t.ID
		}
	}
	return ""
}

// task returns the proposal as a new task. ids are the IDs of the proposals before it.
func (p Proposal) task(from string, ids []string) task.New {
	n := task.New{
		Title: p.Title, Description: p.Description, Acceptance: p.Acceptance, Priority: p.PriorityOrDefault(), Type: p.Type,
		Labels: append([]string{proposedBy + from}, p.Labels...),
	}
	for _, number := range p.After {
		n.After = append(n.After, ids[number-1])
	}
	return n
}

// PriorityOrDefault returns the priority of the task.
func (p Proposal) PriorityOrDefault() int {
	if p.Priority == nil {
		return 2
	}
	return *p.Priority
}

// proposals returns the proposed tasks of the last step of a session that proposed any.
func proposals(v session.View) ([]Proposal, error) {
	events, err := session.Events(v.Dir, event.StepCompleted)
	if err != nil {
		return nil, err
	}
	again := "coven run --grimoire spec-to-tasks " + shellword.Word(v.Task)
	for _, e := range slices.Backward(events) {
		var r event.Result
		if e.Decode(&r) != nil || r.Outputs["tasks"] == nil {
			continue
		}
		all, err := readProposals(r.Outputs["tasks"])
		if err != nil {
			return nil, exit.Failedf(again, "%w", err)
		}
		return all, nil
	}
	return nil, exit.Failedf(again, "no agent proposed tasks for %s: no result has outputs.tasks", v.Task)
}

func readProposals(value any) ([]Proposal, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the proposed tasks: %w", err)
	}
	var all []Proposal
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
		return nil, fmt.Errorf("the agent's outputs.tasks has %d bytes, at most %d are allowed: tell the agent to propose less", len(text), maxProposed*task.MaxText)
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

// check returns the problem of a proposal that follows earlier ones, or "".
func (p Proposal) check(earlier int) string {
	switch {
	case len(p.Title)+len(p.Description)+len(strings.Join(p.Acceptance, "")) > task.MaxText:
		return fmt.Sprintf("its text is longer than %d bytes", task.MaxText)
	case terminal.Printable(p.Title) != p.Title:
		return "the title has control characters"
	case p.Priority != nil && (*p.Priority < 0 || *p.Priority > 4):
		return fmt.Sprintf("priority %d is not between 0 and 4", *p.Priority)
	case p.Type != "" && !slices.Contains(task.Types(), p.Type):
		return fmt.Sprintf("type %q is not one of %s", p.Type, strings.Join(task.Types(), ", "))
	case slices.ContainsFunc(p.After, func(n int) bool { return n < 1 || n > earlier }):
		return "after must list the numbers of earlier tasks, starting at 1"
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

// reserved reports whether a label controls coven.
func reserved(label string) bool {
	label = strings.ToLower(label)
	return strings.HasPrefix(label, project.GrimoireLabel) || strings.HasPrefix(label, proposedBy)
}
