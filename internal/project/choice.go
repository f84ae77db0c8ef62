package project

import (
	"errors"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// GrimoireLabel is the label that chooses a task's grimoire: grimoire:NAME.
const GrimoireLabel = "grimoire:"

// GrimoireOf chooses the grimoire of a new session of a task. flag is what the
// command line says.
func (h *Project) GrimoireOf(t task.Task, flag string) (grimoires.Choice, error) {
	if flag != "" {
		return grimoires.Choice{Grimoire: flag, Why: "--grimoire"}, nil
	}
	for _, label := range t.Labels {
		if name, ok := strings.CutPrefix(label, GrimoireLabel); ok {
			return grimoires.Choice{Grimoire: name, Why: "the label " + label}, nil
		}
	}
	matchers, err := h.Library.Matchers()
	if err != nil {
		return grimoires.Choice{}, err
	}
	if found, ok := matchers.Choose(PlanTask(t)); ok {
		return found, nil
	}
	why := "the default"
	if h.Config.Grimoire != config.Default().Grimoire {
		why = "grimoire of the configuration"
	}
	return grimoires.Choice{Grimoire: h.Config.Grimoire, Why: why}, nil
}

// Chooses demands that what chooses grimoires can be read: the one that the
// command line gives, and the rules.
func (h *Project) Chooses(flag string) error {
	if flag != "" {
		_, err := h.Library.Load(flag)
		return err
	}
	_, err := h.Library.Matchers()
	return err
}

// WouldRun says which grimoire a task would run, and why. A session that can go
// on keeps its own.
func (h *Project) WouldRun(j Item, flag string) (Planned, error) {
	p := Planned{Task: j.Task}
	v, err := h.Finder.OfTask(j.Task.ID)
	if err != nil && !errors.Is(err, session.ErrNone) {
		return p, err
	}
	if err == nil && v.Live() {
		p.Grimoire, p.Why = v.Info.Grimoire, "its session "+v.ID+" goes on"
		return p, nil
	}
	choice, err := h.GrimoireOf(j.Task, flag)
	if err != nil {
		return p, err
	}
	p.Grimoire, p.Why = choice.Grimoire, choice.Why
	if _, err := h.Library.Load(choice.Grimoire); grimoires.IsInvalid(err) {
		p.Problem = err.Error()
	} else if err != nil {
		return p, err
	}
	return p, nil
}

// Planned is a task as run --dry-run --json has it.
type Planned struct {
	task.Task
	Grimoire string `json:"grimoire"`
	Why      string `json:"grimoire_why"`
	Problem  string `json:"problem,omitempty"` // why it cannot be run
}

func PlanTask(t task.Task) grimoires.Task {
	return grimoires.Task{
		ID: t.ID, Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Design: t.Design,
		Notes: t.Notes, Type: t.Type, Priority: t.Priority, Labels: t.Labels, Parent: t.Parent, ExternalRef: t.ExternalRef,
	}
}
