package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/oneline"
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
	return o.confirm(ctx, p, todo, limit)
}

// confirm asks once before many tasks run, and before tasks whose cost is not limited.
func (o *runOptions) confirm(ctx context.Context, p *project.Project, todo []project.Item, limit budget.Amount) (bool, error) {
	if o.yes || !o.app.Interactive || o.json {
		return true, nil
	}
	e := estimateRun(p, todo, o.grimoire, limit, cmp.Or(o.width, p.Config.Run.MaxTasks))
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

func costText(e estimate) string {
	switch {
	case e.Limited:
		return "This costs at most " + e.Max.String() + "."
	case e.Past.Sessions == 0:
		return "Nothing limits the cost."
	}
	past := e.Past
	if past.Max < 0.01 {
		return fmt.Sprintf("Nothing limits the cost. The %s so far cost less than $0.01 each.", oneline.Count(past.Sessions, "session"))
	}
	return fmt.Sprintf("Nothing limits the cost. The %s so far cost $%.2f each on average, at most $%.2f: about $%.2f in all.",
		oneline.Count(past.Sessions, "session"), past.Average, past.Max, past.Average*float64(e.Tasks))
}
