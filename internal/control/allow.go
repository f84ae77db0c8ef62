package control

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/plugins"
)

// admits reports whether the agents of a plan may run here.
func (c *Controller) admits(ctx context.Context, plan *grimoires.Plan) error {
	for _, need := range project.NeedsOf(plan.Grimoire, plan.Provider) {
		if need.Kind != plugins.KindProvider {
			continue
		}
		if err := c.AllowsProvider(ctx, need.Name); err != nil {
			return err
		}
	}
	return c.reviewable(ctx, plan)
}

// reviewable makes sure that agents that are asked to review can change nothing.
func (c *Controller) reviewable(ctx context.Context, plan *grimoires.Plan) error {
	step := ""
	for s := range plan.Grimoire.All() {
		asks := slices.ContainsFunc(s.Plugins(), func(used grimoires.Use) bool {
			return used.Kind != string(plugins.KindProvider) && used.Name == grimoires.AgentReviewer
		})
		if asks && step == "" {
			step = s.Name
		}
	}
	if step == "" {
		return nil
	}
	drives, err := c.Runtime.providers.Traits(ctx, plan.Provider)
	if err != nil || drives.Harmless {
		return err
	}
	return exit.Usagef("coven run --provider claude; or --grimoire with another reviewer in step "+step+" (command, or a plugin)", "%w", agents.WritesWhenReviewing(plan.Provider))
}

// AllowsProvider reports whether a provider's agents may run here. Those whose tool calls do
// not pass the gate can do whatever the user can: only the user's own settings
// allow that, and the question comes before anything is claimed.
func (c *Controller) AllowsProvider(ctx context.Context, name string) error {
	if c.Project.Config.AllowUngated {
		return nil
	}
	drives, err := c.Runtime.providers.Traits(ctx, name)
	if err != nil || drives.Gated {
		return err
	}
	file := filepath.Join(c.Project.Env.UserDir(), "config.yaml")
	return exit.Usagef("coven run --provider claude; or, if you accept that: echo 'allow_ungated: true' >> "+shellword.Word(file),
		"provider %s: coven cannot stop tool calls of its agents, and they are not sandboxed: they can do anything you can", name)
}

// mayUse reports whether a grimoire's secrets are there, and may be taken from where they
// are.
func (c *Controller) mayUse(g *grimoires.Grimoire) error {
	if err := c.Runtime.has(g.Secrets()); err != nil {
		return err
	}
	return c.Project.CheckVariables(c.Project.SecretRequests(g, c.Runtime.secrets))
}

// has reports whether all secrets of these names are there. From then on no record
// shows them.
func (r *Runtime) has(names []string) error {
	for _, name := range names {
		if _, err := r.secrets.Value(name); err != nil {
			return &exit.Error{Exit: exit.Usage, Err: err, Next: "echo '" + name + ": ...' >> " + secret.File}
		}
	}
	return nil
}
