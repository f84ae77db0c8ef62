package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

func (h *house) find(id string) (session.View, error) {
	v, err := session.OfTask(h.repo.Root, id)
	if errors.Is(err, session.ErrNone) {
		return v, exit.Failedf("coven status", "task %s has no session", id)
	}
	return v, err
}

// sessionOf finds a session by its own id or by that of its task.
func (h *house) sessionOf(name string) (session.View, error) {
	if filepath.Base(name) == name && session.Exists(h.repo.Root, name) {
		return session.Load(filepath.Join(h.repo.Root, session.Dir, name))
	}
	return h.find(name)
}

// named looks up the tasks that the user named: in the tracker, or among those
// of the user's own words.
func (h *house) named(ctx context.Context, ids []string) ([]job, error) {
	var jobs []job
	for _, id := range ids {
		j, err := h.wordsOf(id)
		if errors.Is(err, session.ErrNone) {
			j, err = h.tracked(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func (h *house) tracked(ctx context.Context, id string) (job, error) {
	tracker, err := h.tasks()
	if err != nil {
		return job{}, err
	}
	t, err := tracker.Get(ctx, id)
	if err == nil {
		err = t.Usable()
	}
	return job{task: t, tracker: tracker}, err
}

// wordsOf finds a task of the user's own words by its session: ErrNone when the
// id is not one of those.
func (h *house) wordsOf(id string) (job, error) {
	v, err := session.OfTask(h.repo.Root, id)
	if err != nil {
		return job{}, err
	}
	if v.Info.Tracker != untrackedName {
		return job{}, session.ErrNone
	}
	plan, err := planOf(v.Dir)
	if err != nil {
		return job{}, err
	}
	t := task.Task{
		ID: id, Title: plan.Task.Title, Description: plan.Task.Description,
		Labels: []string{grimoireLabel + v.Info.Grimoire}, // what was chosen for it holds
	}
	return job{task: t}, nil
}

// planOf is what a session froze when it began.
func planOf(dir string) (*grimoires.Plan, error) {
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

// newest leaves the newest session of each task. Views have the newest first.
func newest(views []session.View) []session.View {
	var kept []session.View
	seen := map[string]bool{}
	for _, v := range views {
		if !seen[v.Task] {
			seen[v.Task], kept = true, append(kept, v)
		}
	}
	return kept
}
