package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins"
)

// providers are the names of the providers that are built in.
func providers() []string { return slices.Sorted(maps.Keys(drivers())) }

// modelOf is the model of a provider's agents where nobody chose one: coven's own
// default is a model of claude's, and each other CLI has a default of its own.
func modelOf(provider string, cfg config.Config) string {
	standard := config.Default()
	if provider != standard.Provider && cfg.DefaultModel == standard.DefaultModel {
		return ""
	}
	return cfg.DefaultModel
}

// admits says whether the agents of a plan may run here.
func (d *desk) admits(ctx context.Context, plan *grimoires.Plan) error {
	for _, need := range needsOf(plan.Grimoire, plan.Provider) {
		if need.Kind != plugins.KindProvider {
			continue
		}
		if err := d.allows(ctx, need.Name); err != nil {
			return err
		}
	}
	return d.reviewable(ctx, plan)
}

// reviewable makes sure that agents that are asked to review can change nothing.
func (d *desk) reviewable(ctx context.Context, plan *grimoires.Plan) error {
	step := ""
	for s := range plan.Grimoire.All() {
		asks := s.AgentLoop != nil && s.AgentLoop.Arbiter.Plugin == grimoires.AgentJudge
		for _, j := range s.Reviewers() {
			asks = asks || j.Plugin == grimoires.AgentJudge
		}
		if asks && step == "" {
			step = s.Name
		}
	}
	if step == "" {
		return nil
	}
	drives, err := d.engine.drives(ctx, plan.Provider)
	if err != nil || drives.harmless {
		return err
	}
	return usage("coven run --provider claude; or --grimoire with another reviewer in step "+step+" (command, or a plugin)", "%w", writesWhenReviewing(plan.Provider))
}

// writesWhenReviewing says that a provider's agents cannot review.
func writesWhenReviewing(provider string) error {
	return fmt.Errorf("provider %s cannot keep an agent from writing, so its agents cannot review", provider)
}

// allows says whether a provider's agents may run here. Those whose tool calls do
// not pass the gate can do whatever the user can: only the user's own settings
// allow that, and the question comes before anything is claimed.
func (d *desk) allows(ctx context.Context, name string) error {
	if d.house.config.AllowUngated {
		return nil
	}
	drives, err := d.engine.drives(ctx, name)
	if err != nil || drives.gated {
		return err
	}
	file := filepath.Join(d.house.env.userDir(), "config.yaml")
	return usage("coven run --provider claude; or, if you accept that: echo 'allow_ungated: true' >> "+shellWord(file),
		"provider %s: coven cannot stop a tool call of its agents, and there is no fence around them yet: they can do whatever you can", name)
}

// keeper returns what stores the worktree while an agent works whose calls do not
// pass the gate, when it has changed; nil when there is to be no such agent.
func (c *crew) keeper(ctx context.Context, kind drives, emit func(event.Type, any) error) (func(context.Context) error, error) {
	if kind.gated || !c.ungated {
		return nil, nil
	}
	last, err := c.site.Tree(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		now, err := c.site.Tree(ctx)
		if err != nil || now == last {
			return err
		}
		snapshot, err := c.site.Snapshot(ctx, "while the agent works")
		if err != nil {
			return err
		}
		last = now
		return emit(event.SnapshotTaken, snapshot)
	}, nil
}
