package project

import (
	"errors"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/task"
)

// GrimoireLabel is the prefix of a label that selects a task's grimoire: grimoire:NAME.
const GrimoireLabel = "grimoire:"

// GrimoireOf chooses the grimoire of a new session of a task. flag is the value of
// --grimoire.
func (p *Project) GrimoireOf(t task.Task, flag string) (grimoires.Choice, error) {
	if flag != "" {
		return grimoires.Choice{Grimoire: flag, Why: "--grimoire"}, nil
	}
	for _, label := range t.Labels {
		if name, ok := strings.CutPrefix(label, GrimoireLabel); ok {
			return grimoires.Choice{Grimoire: name, Why: "the label " + label}, nil
		}
	}
	matchers, err := p.Library.Matchers()
	if err != nil {
		return grimoires.Choice{}, err
	}
	if found, ok := matchers.Choose(PlanTask(t)); ok {
		return found, nil
	}
	why := "the default"
	if p.Config.Grimoire != config.Default().Grimoire {
		why = "grimoire of the configuration"
	}
	return grimoires.Choice{Grimoire: p.Config.Grimoire, Why: why}, nil
}

// CheckChoice returns an error if the grimoire of --grimoire, or the file of matchers, is unreadable.
func (p *Project) CheckChoice(flag string) error {
	if flag != "" {
		_, err := p.Library.Load(flag)
		return err
	}
	_, err := p.Library.Matchers()
	return err
}

// WouldRun returns the grimoire that a task would run, and the reason. A session that can be resumed
// keeps its grimoire.
func (p *Project) WouldRun(item Item, flag string) (Planned, error) {
	planned := Planned{Task: item.Task}
	v, err := p.Finder.OfTask(item.Task.ID)
	if err != nil && !errors.Is(err, session.ErrNone) {
		return planned, err
	}
	if err == nil && v.Live() {
		planned.Grimoire, planned.Why, planned.Continues = v.Info.Grimoire, "session "+v.ID+" continues", true
		return planned, nil
	}
	choice, err := p.GrimoireOf(item.Task, flag)
	if err != nil {
		return planned, err
	}
	planned.Grimoire, planned.Why = choice.Grimoire, choice.Why
	if _, err := p.Library.Load(choice.Grimoire); grimoires.IsInvalid(err) {
		planned.Problem = err.Error()
	} else if err != nil {
		return planned, err
	}
	return planned, nil
}

// Planned is a task in the output of run --dry-run --json.
type Planned struct {
	task.Task
	Grimoire string `json:"grimoire"`
	Why      string `json:"grimoire_why"`
	Problem  string `json:"problem,omitempty"` // why it cannot run
	// Estimate is the expected cost. It is nil if too few sessions with the grimoire have ended.
	Estimate *spending.Estimate `json:"estimate,omitempty"`

	Continues bool `json:"-"` // a session of the task that can be resumed
}

// PlanTask converts a task to its form in a plan.
func PlanTask(t task.Task) grimoires.Task {
	return grimoires.Task{
		ID: t.ID, Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Design: t.Design,
		Notes: t.Notes, Type: t.Type, Priority: t.Priority, Labels: t.Labels, Parent: t.Parent, ExternalRef: t.ExternalRef,
	}
}
