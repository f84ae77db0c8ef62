package storage

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/snapshot"
)

// CollectAuto is Collect, at most once a day, and not while a task runs. In between, it packs the objects if there are many, also while a task runs. It does nothing if
// another process collects.
func CollectAuto(ctx context.Context, p *project.Project) error {
	if !p.NeedsCollection() {
		return nil
	}
	err := errRunning
	if snapshot.CollectionDue(p.Repo, p.Env.Now()) {
		err = collectToday(ctx, p)
	}
	if errors.Is(err, errRunning) {
		err = snapshot.Pack(ctx, p.Repo, p.Env.Now())
	}
	if errors.Is(err, snapshot.ErrCollecting) {
		return nil
	}
	return err
}

// collectToday is CollectAuto when a collection is due. If a task runs, a later run of this day may collect.
func collectToday(ctx context.Context, p *project.Project) error {
	sessions, err := p.Finder.Summaries()
	if _, err = session.DamagedIn(err); err != nil {
		return err
	}
	if err := idle(sessions); err != nil {
		return err
	}
	mine, err := snapshot.BeginCollection(ctx, p.Repo, p.Env.Now())
	if err != nil || !mine {
		return err
	}
	_, err = collection(ctx, p, false) // the result is not reported
	return err
}
