package control

import (
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/exit"
)

// Spawn runs a subagent for a person in a separate worktree. Nothing starts if the request is invalid.
func (c *Controller) Spawn(ctx context.Context, r grimoires.SpawnRequest, o Options) (Outcome, error) {
	item, err := c.Project.AdHoc(ctx, r.Task)
	if err != nil {
		return Outcome{}, err
	}
	o.Grimoire, o.spawn = planning.SingleAgent, &r
	target, err := c.Project.Repo.Target(ctx, o.Onto)
	if err != nil {
		return Outcome{}, err
	}
	if _, err := c.Project.Agents().Get(r.Agent); err != nil {
		return Outcome{}, exit.Failedf("coven agents list", "%w", err)
	}
	return c.beginNew(ctx, item, target, o)
}
