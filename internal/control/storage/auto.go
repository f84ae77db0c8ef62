package storage

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/snapshot"
)

// CollectDaily is Collect, at most once a day. It does nothing if a task runs or another process collects.
func CollectDaily(ctx context.Context, p *project.Project) error {
	if !p.Config.GC.Auto || !snapshot.CollectionDue(p.Repo, p.Env.Now()) {
		return nil
	}
	err := collectToday(ctx, p)
	if errors.Is(err, errRunning) || errors.Is(err, snapshot.ErrCollecting) {
		return nil
	}
	return err
}

// collectToday is CollectDaily when a collection is due. If a task runs, a later run of this day may collect.
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
