package planning

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// part is a part of a plan that comes from settings.
type part struct {
	name string
	// file means that coven ships files for it. They differ between versions of coven, so that a difference need not come from
	// a person.
	file bool
	get  func(*grimoires.Plan) any
	take func(to, from *grimoires.Plan)
}

func parts() []part {
	return []part{
		{"checks", false, func(p *grimoires.Plan) any { return p.Checks }, func(to, from *grimoires.Plan) { to.Checks = from.Checks }},
		{event.WorktreeSettings, false, func(p *grimoires.Plan) any { return p.Worktree }, func(to, from *grimoires.Plan) { to.Worktree = from.Worktree }},
		{"permissions", false, func(p *grimoires.Plan) any { return p.Rules }, func(to, from *grimoires.Plan) { to.Rules = from.Rules }},
		{"mcp", false, func(p *grimoires.Plan) any { return p.MCP }, func(to, from *grimoires.Plan) { to.MCP = from.MCP }},
		{"tools", false, func(p *grimoires.Plan) any { return p.Tools }, func(to, from *grimoires.Plan) { to.Tools = from.Tools }},
		{"grimoire", true, func(p *grimoires.Plan) any { return p.Grimoire }, func(to, from *grimoires.Plan) { to.Grimoire, to.Raw = from.Grimoire, from.Raw }},
		{"prompts", true, func(p *grimoires.Plan) any { return p.Prompts }, func(to, from *grimoires.Plan) { to.Prompts = from.Prompts }},
		{"agents", true, func(p *grimoires.Plan) any { return p.Agents }, func(to, from *grimoires.Plan) { to.Agents, to.Tree = from.Agents, from.Tree }},
		{"skills", true, func(p *grimoires.Plan) any { return p.Skills }, func(to, from *grimoires.Plan) { to.Skills = from.Skills }},
	}
}

// Renew returns the plan of a session with the present settings, and the names of the parts that have changed since it was frozen.
// now is the task as it is in its tracker, or nil. The target, the provider and the model stay. The grimoire and its prompts stay as well if it has other steps now, because
// the results of the session are those of its steps.
func Renew(p *project.Project, frozen *grimoires.Plan, now *task.Task, info event.Session) (*grimoires.Plan, []string, error) {
	draft, err := present(p, frozen, info)
	if err != nil {
		return nil, nil, err
	}
	renewed, changed := *frozen, []string{}
	for _, part := range parts() {
		if part.file && (info.Version != p.Env.Version || !slices.Equal(shape(frozen.Grimoire), shape(draft.Grimoire))) {
			continue
		}
		old, err := yamldoc.Marshal(part.get(frozen))
		if err != nil {
			return nil, nil, err
		}
		now, err := yamldoc.Marshal(part.get(draft))
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(old, now) {
			part.take(&renewed, draft)
			changed = append(changed, part.name)
		}
	}
	if now != nil {
		if renewed.Task = retold(frozen.Task, *now); !reflect.DeepEqual(renewed.Task, frozen.Task) {
			changed = append(changed, "task")
		}
	}
	return &renewed, changed, nil
}

// present returns the plan of a session with the present settings.
func present(p *project.Project, frozen *grimoires.Plan, info event.Session) (*grimoires.Plan, error) {
	o := Options{Grimoire: frozen.Grimoire.Name, Provider: frozen.Provider, Spawn: frozen.Spawn, Chat: frozen.Chat, Pull: frozen.Grimoire.LandsByPullRequest()}
	if frozen.Tree == nil && frozen.Grimoire.Name == SingleAgent {
		o.Agent = info.Agent
	}
	if overridesModels(frozen) {
		o.Model = frozen.Model
	}
	draft, err := Draft(p, task.Task{ID: frozen.Task.ID}, o)
	if err != nil {
		return nil, err
	}
	if !o.Pull && draft.Grimoire.LandsByPullRequest() { // the target of the session is a branch of this repository
		if err := draft.Grimoire.Strategies("squash", true); err != nil {
			return nil, err
		}
	}
	return asRead(draft)
}

// Resumed returns the plan with which a session continues: its own, or with renew that with the present settings. changed names the
// settings that differ.
func Resumed(ctx context.Context, p *project.Project, v session.View, renew bool) (plan *grimoires.Plan, changed []string, err error) {
	frozen, err := project.PlanOf(v.Dir)
	if err != nil {
		return nil, nil, err
	}
	now, changed, err := Renew(p, frozen, TaskNow(ctx, p, v), v.Info)
	switch {
	case renew:
		return now, changed, err
	case err != nil: // it is reported where the settings are used
		return frozen, nil, nil //nolint:nilerr // as above
	}
	return frozen, changed, nil
}

// Freeze stores the plan of a session.
func Freeze(s *session.Session, plan *grimoires.Plan) error {
	frozen, err := plan.Marshal()
	if err != nil {
		return err
	}
	return s.Freeze(frozen)
}

// Changed names the settings that differ from those with which a session began. Those that cannot be read have not
// changed: the error is reported where they are used.
func Changed(ctx context.Context, p *project.Project, v session.View) []string {
	_, changed, err := Resumed(ctx, p, v, false)
	if err != nil {
		return nil
	}
	return changed
}

// Text says that settings have changed.
func Text(changed []string) string {
	return "the settings (" + strings.Join(changed, ", ") + ") have changed since the session began"
}

// TaskNow returns the task of a blocked session as it is in its tracker, or nil.
func TaskNow(ctx context.Context, p *project.Project, v session.View) *task.Task {
	if v.Info.Tracker == project.NoTracker || v.Failing == "" {
		return nil
	}
	tracker, err := p.Tasks()
	if err != nil {
		return nil
	}
	now, err := tracker.Get(ctx, v.Task)
	if err != nil {
		return nil
	}
	return &now
}

// retold returns a task with the texts of another. Its other fields change while coven works on it.
func retold(t grimoires.Task, now task.Task) grimoires.Task {
	t.Title, t.Description, t.Acceptance, t.Design = now.Title, now.Description, now.Acceptance, now.Design
	return t
}

// asRead returns a plan as a session reads it.
func asRead(plan *grimoires.Plan) (*grimoires.Plan, error) {
	data, err := plan.Marshal()
	if err != nil {
		return nil, err
	}
	return grimoires.ReadPlan(data)
}

// overridesModels reports whether the person chose a model for the session, instead of those of the agents.
func overridesModels(plan *grimoires.Plan) bool {
	return slices.ContainsFunc(plan.Grimoire.AgentSteps(), func(a *grimoires.Agent) bool {
		return a.Model == "" && plan.Agents[a.Agent].Model != ""
	})
}

// shape lists the names and types of the steps of a grimoire.
func shape(g *grimoires.Grimoire) (steps []string) {
	for s := range g.All() {
		steps = append(steps, s.Name+" "+s.Kind.Type())
	}
	return steps
}
