package main

import (
	"errors"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// grimoireLabel is the label that chooses a task's grimoire: grimoire:NAME.
const grimoireLabel = "grimoire:"

// grimoireOf chooses the grimoire of a new session of a task. flag is what the
// command line says.
func (h *house) grimoireOf(t task.Task, flag string) (grimoires.Choice, error) {
	if flag != "" {
		return grimoires.Choice{Grimoire: flag, Why: "--grimoire"}, nil
	}
	for _, label := range t.Labels {
		if name, ok := strings.CutPrefix(label, grimoireLabel); ok {
			return grimoires.Choice{Grimoire: name, Why: "the label " + label}, nil
		}
	}
	matchers, err := h.library.Matchers()
	if err != nil {
		return grimoires.Choice{}, err
	}
	if found, ok := matchers.Choose(planTask(t)); ok {
		return found, nil
	}
	why := "the default"
	if h.config.Grimoire != config.Default().Grimoire {
		why = "grimoire of the configuration"
	}
	return grimoires.Choice{Grimoire: h.config.Grimoire, Why: why}, nil
}

// chooses demands that what chooses grimoires can be read: the one that the
// command line gives, and the rules.
func (h *house) chooses(flag string) error {
	if flag != "" {
		_, err := h.library.Load(flag)
		return err
	}
	_, err := h.library.Matchers()
	return err
}

// wouldRun says which grimoire a task would run, and why. A session that can go
// on keeps its own.
func (h *house) wouldRun(j job, flag string) (planned, error) {
	p := planned{Task: j.task}
	v, err := h.finder.OfTask(j.task.ID)
	if err != nil && !errors.Is(err, session.ErrNone) {
		return p, err
	}
	if err == nil && v.Live() {
		p.Grimoire, p.Why = v.Info.Grimoire, "its session "+v.ID+" goes on"
		return p, nil
	}
	choice, err := h.grimoireOf(j.task, flag)
	if err != nil {
		return p, err
	}
	p.Grimoire, p.Why = choice.Grimoire, choice.Why
	if _, err := h.library.Load(choice.Grimoire); grimoires.IsInvalid(err) {
		p.Problem = err.Error()
	} else if err != nil {
		return p, err
	}
	return p, nil
}

// planned is a task as run --dry-run --json has it.
type planned struct {
	task.Task
	Grimoire string `json:"grimoire"`
	Why      string `json:"grimoire_why"`
	Problem  string `json:"problem,omitempty"` // why it cannot be run
}

func planTask(t task.Task) grimoires.Task {
	return grimoires.Task{
		ID: t.ID, Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Design: t.Design,
		Notes: t.Notes, Type: t.Type, Priority: t.Priority, Labels: t.Labels, Parent: t.Parent, ExternalRef: t.ExternalRef,
	}
}
