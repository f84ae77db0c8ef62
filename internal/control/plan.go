package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// plan makes the frozen plan of a new session: after this nothing is read from
// the grimoires, prompts or configuration again.
func (d *Controller) plan(ctx context.Context, item project.Item, prior session.View, c Options) (*grimoires.Plan, error) {
	cfg := d.Project.Config
	choice, err := d.Project.GrimoireOf(item.Task, c.Grimoire)
	if err != nil {
		return nil, err
	}
	g, err := d.Project.Library.Load(choice.Grimoire)
	if err != nil && c.Grimoire == "" {
		err = fmt.Errorf("%w\nchosen by %s", err, choice.Why)
	}
	if err != nil {
		return nil, err
	}
	checks, _ := d.Project.Checks()
	plan, err := d.Project.Library.Freeze(g, checks)
	if err != nil {
		return nil, err
	}
	if plan.Grimoire.Budget.IsZero() {
		plan.Grimoire.Budget.Amount = cfg.Budget
	}
	if err := d.mayUse(plan.Grimoire); err != nil {
		return nil, err
	}
	plan.Provider = cmp.Or(c.Provider, cfg.Provider)
	plan.Model = cmp.Or(c.Model, project.ModelOf(plan.Provider, cfg))
	if err := d.Project.CheckPlugins(project.NeedsOf(g, plan.Provider)); err != nil {
		return nil, err
	}
	if err := d.admits(ctx, plan); err != nil {
		return nil, err
	}
	plan.Target = c.Target.Ref
	plan.Task = project.PlanTask(item.Task)
	if cfg.PriorAttempt {
		plan.Attempt = AttemptText(prior)
	}
	return plan, nil
}

// AttemptText tells the next attempt what the one before came to.
func AttemptText(v session.View) string {
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
