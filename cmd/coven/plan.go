package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/session"
)

// plan makes the frozen plan of a new session: after this nothing is read from
// the grimoires, prompts or configuration again.
func (d *desk) plan(ctx context.Context, j job, prior session.View, c choices) (*grimoires.Plan, error) {
	cfg := d.house.config
	choice, err := d.house.grimoireOf(j.task, c.grimoire)
	if err != nil {
		return nil, err
	}
	g, err := d.house.library.Load(choice.Grimoire)
	if err != nil && c.grimoire == "" {
		err = fmt.Errorf("%w\nchosen by %s", err, choice.Why)
	}
	if err != nil {
		return nil, err
	}
	checks, _ := d.house.checks()
	plan, err := d.house.library.Freeze(g, checks)
	if err != nil {
		return nil, err
	}
	if plan.Grimoire.Budget == (budget.Amount{}) {
		plan.Grimoire.Budget = cfg.Budget
	}
	if err := d.mayUse(plan.Grimoire); err != nil {
		return nil, err
	}
	plan.Provider = cmp.Or(c.provider, cfg.Provider)
	plan.Model = cmp.Or(c.model, modelOf(plan.Provider, cfg))
	if err := d.house.mayRun(needsOf(g, plan.Provider)); err != nil {
		return nil, err
	}
	if err := d.admits(ctx, plan); err != nil {
		return nil, err
	}
	plan.Target = c.target.Ref
	plan.Task = planTask(j.task)
	if cfg.PriorAttempt {
		plan.Attempt = attemptText(prior)
	}
	return plan, nil
}

// attemptText tells the next attempt what the one before came to.
func attemptText(v session.View) string {
	if v.Started.IsZero() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Status: %s\n", v.Status)
	reason := v.Detail
	if why := oneline.Of(v.FailedWhy); why != "" && why != oneline.Of(v.Detail) { // and then a person dismissed it
		reason = why + "; " + v.Detail
	}
	for _, part := range []struct{ name, text string }{
		{"Failing step", v.FailedAt},
		{"Reason", reason},
		{"Summary", v.Summary},
		{"Landed as", v.Commit},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", part.name, oneline.Of(part.text))
		}
	}
	return b.String()
}
