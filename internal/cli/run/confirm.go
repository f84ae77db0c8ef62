package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/plugins"
)

// consent reports whether the run may start: its plugins are trusted, and the user agrees.
func (o *runOptions) consent(ctx context.Context, p *project.Project, todo []project.Item, limit budget.Amount) (bool, error) {
	admit := func(ctx context.Context, needs []plugins.Need) error { return o.app.AdmitPlugins(ctx, p, needs) }
	if o.json {
		admit = func(_ context.Context, needs []plugins.Need) error { return p.CheckPlugins(needs) }
	}
	if err := admit(ctx, p.NeedsOfItems(todo, o.grimoire, o.provider)); err != nil {
		return false, err
	}
	if o.app.Interactive && !o.json {
		if err := o.printEstimates(p, todo); err != nil {
			return false, err
		}
	}
	return o.confirm(ctx, p, todo, limit)
}

// confirm asks once before many tasks run, and before tasks whose cost is not limited.
func (o *runOptions) confirm(ctx context.Context, p *project.Project, todo []project.Item, limit budget.Amount) (bool, error) {
	if o.yes || !o.app.Interactive || o.json {
		return true, nil
	}
	e := extentOf(p, todo, o.grimoire, limit, cmp.Or(o.width, p.Config.Run.MaxTasks))
	if !e.needsConfirmation() {
		return true, nil
	}
	what := "1 task"
	if e.Tasks > 1 {
		what = fmt.Sprintf("%d tasks, %d at once", e.Tasks, e.AtOnce)
	}
	answer, err := o.app.Ask(ctx, fmt.Sprintf("Run %s? %s [y]es [n]o ", what, costText(e)))
	return strings.HasPrefix(answer, "y"), err
}

func costText(e extent) string {
	if e.Limited {
		return "This costs at most " + e.Max.String() + "."
	}
	return "Nothing limits the cost."
}
