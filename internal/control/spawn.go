package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/spawn"
	"github.com/coven-run/coven/worktree"
)

// spawnGrimoire is the workflow of a session whose only agent a person starts directly.
const spawnGrimoire = "none"

// Spawn runs a subagent that a person asks for, in a worktree of its own. Nothing starts if the
// request is not valid.
func (c *Controller) Spawn(ctx context.Context, r grimoires.SpawnRequest, o Options) (Outcome, error) {
	o.Grimoire, o.spawn = spawnGrimoire, &r
	target, err := c.Project.Repo.Target(ctx, o.Onto)
	if err != nil {
		return Outcome{}, err
	}
	if _, err := c.Project.Agents().Get(r.Agent); err != nil {
		return Outcome{}, exit.Failedf("coven agents list", "%w", err)
	}
	for {
		item, err := c.Project.AdHoc(ctx, r.Task)
		if err != nil {
			return Outcome{}, err
		}
		outcome, err := c.begin(ctx, item, session.View{}, target, o)
		if outcome.Session != "" || !errors.As(err, new(*worktree.ClaimedError)) {
			return outcome, err
		}
		// Another coven has just started the same task, and with it the name is taken.
	}
}

// directly makes the step of a grimoire start the subagent of a request.
func directly(g *grimoires.Grimoire) {
	for _, step := range g.AgentSteps() {
		step.Agent = spawn.User
	}
}
