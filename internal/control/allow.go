package control

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
)

// checkProviders returns an error if the agents of a plan may not run here.
func (c *Controller) checkProviders(ctx context.Context, plan *grimoires.Plan) error {
	for _, need := range project.NeedsOf(plan.Grimoire, plan.Provider) {
		if need.Kind != plugins.KindProvider {
			continue
		}
		if err := c.AllowsProvider(ctx, need.Name); err != nil {
			return err
		}
	}
	if err := c.checkPermissionsEnforced(ctx, plan); err != nil {
		return err
	}
	return c.checkReviewers(ctx, plan)
}

// checkPermissionsEnforced returns an error if a provider cannot enforce the permissions of an agent.
func (c *Controller) checkPermissionsEnforced(ctx context.Context, plan *grimoires.Plan) error {
	for _, step := range append(plan.Grimoire.AgentSteps(), &grimoires.Agent{}) {
		name := cmp.Or(step.Agent, grimoires.DefaultAgent)
		if name == spawn.User { // package agents checks the subagent
			continue
		}
		if !agents.Confined(plan, name) {
			continue
		}
		driven := cmp.Or(step.Provider, plan.Provider)
		drives, err := c.Runtime.providers.Traits(ctx, driven)
		if err != nil {
			return err
		}
		if !drives.Gated {
			return exit.Usagef("coven run --provider claude", "provider %s cannot hold agent '%s' to its permissions: its tool calls do not pass the gate", driven, name)
		}
	}
	return nil
}

// checkReviewers returns an error if reviewing agents could change files.
func (c *Controller) checkReviewers(ctx context.Context, plan *grimoires.Plan) error {
	for step, providers := range agents.ReviewProviders(plan) {
		for _, provider := range providers {
			drives, err := c.Runtime.providers.Traits(ctx, provider)
			if err != nil {
				return err
			}
			if !drives.Harmless {
				return exit.Usagef("coven run --provider claude; or --grimoire with another reviewer in step "+step+" (command, or a plugin)", "%w", accounts.WritesWhenReviewing(provider))
			}
			if err := c.AllowsProvider(ctx, provider); err != nil {
				return err
			}
		}
	}
	return nil
}

// AllowsProvider returns an error if a provider's agents may not run here. Without a sandbox, agents whose
// tool calls do not pass the gate can do anything the user can, so only the user's own settings allow them.
// Callers check this before they claim a task.
func (c *Controller) AllowsProvider(ctx context.Context, name string) error {
	if err := c.Project.CheckProvider(name); err != nil {
		return err
	}
	drives, err := c.Runtime.providers.Traits(ctx, name)
	if err != nil || drives.Gated || c.allowsUngated() {
		return err
	}
	file := filepath.Join(c.Project.Env.UserDir(), "config.yaml")
	return exit.Usagef("coven run --provider claude; or, if you accept that: echo 'allow_ungated: true' >> "+shellword.Word(file),
		"provider %s: coven cannot stop tool calls of its agents, and there is no sandbox here: they can do anything you can", name)
}

// allowsUngated reports whether agents may run if their tool calls do not pass the gate.
func (c *Controller) allowsUngated() bool {
	return c.Project.Config.AllowUngated || c.Runtime.Sandbox.Level() != sandbox.None
}

// checkTrust returns an error if a secret of a plan is missing, or if a variable or an MCP server of the plan
// is not trusted.
func (c *Controller) checkTrust(plan *grimoires.Plan) error {
	if err := c.Runtime.checkSecrets(plan.Grimoire.Secrets()); err != nil {
		return err
	}
	return c.Project.CheckPlan(plan, c.Runtime.secrets)
}

// checkSecrets returns an error if one of the secrets is missing. Records hide them from then on.
func (r *Runtime) checkSecrets(names []string) error {
	for _, name := range names {
		if _, err := r.secrets.Value(name); err != nil {
			return &exit.Error{Exit: exit.Usage, Err: err, Next: "echo '" + name + ": ...' >> " + secret.File}
		}
	}
	return nil
}
