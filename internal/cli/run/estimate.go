package run

import (
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
)

// maxUnconfirmed is the number of tasks that run without confirmation.
const maxUnconfirmed = 5

// estimate is the possible cost of running tasks.
type estimate struct {
	Tasks  int
	AtOnce int
	// Max is the maximum cost of the tasks. It is valid only if Limited is set.
	Max     budget.Amount
	Limited bool
	Past    past // cost of earlier sessions; only if nothing limits these tasks
}

// past is the cost of earlier sessions, in US dollars.
type past struct {
	Sessions     int // those with a cost
	Average, Max float64
}

// needsConfirmation reports whether to ask the user before the tasks run: there are many of them, or
// nothing limits their cost.
func (e estimate) needsConfirmation() bool {
	return e.Tasks > maxUnconfirmed || e.Tasks > 0 && !e.Limited
}

// estimateRun estimates the cost of tasks. limit is the budget of all tasks together; if it is zero, the
// budgets of their grimoires count.
func estimateRun(p *project.Project, items []project.Item, grimoire string, limit budget.Amount, atOnce int) estimate {
	e := estimate{Tasks: len(items), AtOnce: min(atOnce, len(items)), Max: limit, Limited: true}
	if limit == (budget.Amount{}) {
		e.Max, e.Limited = maxCost(p, items, grimoire)
	}
	if !e.Limited {
		e.Past = pastCost(p)
	}
	return e
}

// maxCost returns the maximum cost of tasks. It is not limited if the grimoire of a task has no budget.
func maxCost(p *project.Project, items []project.Item, grimoire string) (total budget.Amount, limited bool) {
	limited = true
	var all []budget.Amount
	for _, item := range items {
		choice, err := p.GrimoireOf(item.Task, grimoire)
		if err != nil {
			continue // the task will not run
		}
		g, err := p.Library.Load(choice.Grimoire)
		if err != nil || !g.HasAgents() {
			continue // the task will not run, or costs nothing
		}
		of := g.Budget.Amount
		if of == (budget.Amount{}) {
			of = p.Config.Budget
		}
		limited = limited && of != (budget.Amount{})
		all = append(all, of)
	}
	return budget.Sum(all), limited
}

func pastCost(p *project.Project) past {
	all, _ := p.Finder.Summaries() // the cost of unreadable sessions is unknown
	costs, sum := past{}, 0.0
	for _, s := range all {
		if cost := s.Cost; cost > 0 {
			sum, costs.Max, costs.Sessions = sum+cost, max(costs.Max, cost), costs.Sessions+1
		}
	}
	if costs.Sessions > 0 {
		costs.Average = sum / float64(costs.Sessions)
	}
	return costs
}
