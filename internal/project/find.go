package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// Find returns the newest session of a task. The error is a *NoSessionError if it has none.
func (p *Project) Find(id string) (session.View, error) {
	v, err := session.OfTask(p.Repo.Root, id)
	if errors.Is(err, session.ErrNone) {
		return v, &NoSessionError{Task: id}
	}
	return v, err
}

// NoSessionError reports a task that has never been run.
type NoSessionError struct{ Task string }

// Error implements error.
func (e *NoSessionError) Error() string { return fmt.Sprintf("task %s has no session", e.Task) }

// CommandExit returns exit.Failed.
func (e *NoSessionError) CommandExit() int { return exit.Failed }

// NextCommand returns the command that lists the sessions.
func (e *NoSessionError) NextCommand() string { return "coven status" }

// SessionOf returns a session by its own ID or by that of its task.
func (p *Project) SessionOf(name string) (session.View, error) {
	if filepath.Base(name) == name && session.Exists(p.Repo.Root, name) {
		return session.Load(filepath.Join(p.Repo.Root, session.Dir, name))
	}
	return p.Find(name)
}

// Named returns the tasks that the user named. They are in the tracker, or ad-hoc prompts
// that have a session.
func (p *Project) Named(ctx context.Context, ids []string) ([]Item, error) {
	var items []Item
	for _, id := range ids {
		item, err := p.adHocItem(id)
		if errors.Is(err, session.ErrNone) {
			item, err = p.Tracked(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Tracked returns a task of the tracker.
func (p *Project) Tracked(ctx context.Context, id string) (Item, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return Item{}, err
	}
	t, err := tracker.Get(ctx, id)
	if err == nil {
		err = t.Usable()
	}
	return Item{Task: t, Tracker: tracker}, err
}

// adHocItem returns the task of an ad-hoc prompt from its session. The error is
// session.ErrNone if the ID is not that of an ad-hoc prompt.
func (p *Project) adHocItem(id string) (Item, error) {
	v, err := session.OfTask(p.Repo.Root, id)
	if err != nil {
		return Item{}, err
	}
	if v.Info.Tracker != NoTracker {
		return Item{}, session.ErrNone
	}
	plan, err := PlanOf(v.Dir)
	if err != nil {
		return Item{}, err
	}
	t := task.Task{
		ID: id, Title: plan.Task.Title, Description: plan.Task.Description,
		Labels: []string{GrimoireLabel + v.Info.Grimoire}, // keeps the choice of the first session
	}
	return Item{Task: t}, nil
}

// PlanOf returns the frozen plan of a session.
func PlanOf(dir string) (*grimoires.Plan, error) {
	frozen, err := session.Plan(dir)
	if err != nil {
		return nil, err
	}
	plan, err := grimoires.ReadPlan(frozen)
	if newer := (*grimoires.VersionError)(nil); errors.As(err, &newer) {
		return nil, exit.Usagef("coven version", "session %s: %w", filepath.Base(dir), err)
	}
	return plan, err
}

// Newest returns the newest session of each task. The newest of views come first.
func Newest(views []session.View) []session.View {
	var kept []session.View
	seen := map[string]bool{}
	for _, v := range views {
		if !seen[v.Task] {
			seen[v.Task], kept = true, append(kept, v)
		}
	}
	return kept
}
