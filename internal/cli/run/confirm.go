package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins"
)

// consent reports whether the run may start: its plugins are trusted, and the person
// at the terminal agrees.
func (o *runOptions) consent(ctx context.Context, p *project.Project, todo []project.Item, limit budget.Amount) (bool, error) {
	admit := func(ctx context.Context, needs []plugins.Need) error { return o.app.AdmitPlugins(ctx, p, needs) }
	if o.json {
		admit = func(_ context.Context, needs []plugins.Need) error { return p.CheckPlugins(needs) }
	}
	if err := admit(ctx, p.NeedsOfItems(todo, o.grimoire, o.provider)); err != nil {
		return false, err
	}
	return o.confirm(ctx, p, todo, limit)
}

// confirm asks once before many tasks are run, and before one that nothing
// limits.
func (o *runOptions) confirm(ctx context.Context, p *project.Project, todo []project.Item, limit budget.Amount) (bool, error) {
	if o.yes || !o.app.Interactive || o.json || len(todo) == 0 {
		return true, nil
	}
	most, limited := o.most(p, todo, limit)
	if len(todo) <= manyTasks && limited {
		return true, nil
	}
	what := "1 task"
	if len(todo) > 1 {
		width := cmp.Or(o.width, p.Config.Run.MaxTasks)
		what = fmt.Sprintf("%d tasks, %d at once", len(todo), min(width, len(todo)))
	}
	cost := "The cost is not limited." + before(p, len(todo))
	if limited {
		cost = "This costs at most " + most.String() + "."
	}
	answer, err := o.app.Ask(ctx, fmt.Sprintf("Run %s? %s [y]es [n]o ", what, cost))
	return strings.HasPrefix(answer, "y"), err
}

// most is what tasks can cost at most, as far as each of them says: limited is
// false when one says nothing.
func (o *runOptions) most(p *project.Project, todo []project.Item, limit budget.Amount) (most budget.Amount, limited bool) {
	if limit != (budget.Amount{}) {
		return limit, true
	}
	limited = true
	var all []budget.Amount
	for _, item := range todo {
		choice, err := p.GrimoireOf(item.Task, o.grimoire)
		if err != nil {
			continue // it will not run
		}
		g, err := p.Library.Load(choice.Grimoire)
		if err != nil || !g.HasAgents() {
			continue // nor does it cost anything
		}
		of := g.Budget.Amount
		if of == (budget.Amount{}) {
			of = p.Config.Budget
		}
		limited = limited && of != (budget.Amount{})
		all = append(all, of)
	}
	return budget.Together(all), limited
}

// before says what earlier tasks cost.
func before(p *project.Project, count int) string {
	views, _ := session.List(p.Repo.Root) // what cannot be read tells nothing
	sum, most, n := 0.0, 0.0, 0
	for _, v := range views {
		if cost := v.Used.USD; cost > 0 {
			sum, most, n = sum+cost, max(most, cost), n+1
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" The last %d cost $%.2f each, at most $%.2f: about $%.2f.", n, sum/float64(n), most, sum/float64(n)*float64(count))
}
