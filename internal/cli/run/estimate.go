package run

import (
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
)

// maxUnconfirmed is how many tasks run without asking a person first.
const maxUnconfirmed = 5

// estimate is what running tasks may cost.
type estimate struct {
	Tasks  int
	AtOnce int
	// Max is what the tasks can cost at most. It is a limit only if Limited is set.
	Max     budget.Amount
	Limited bool
	Past    past // what earlier sessions cost; only if nothing limits these tasks
}

// past is what earlier sessions cost, in US dollars.
type past struct {
	Sessions     int // those that cost anything
	Average, Max float64
}

// needsConfirmation reports whether coven should ask a person before the tasks run:
// there are many of them, or nothing limits what they cost.
func (e estimate) needsConfirmation() bool {
	return e.Tasks > maxUnconfirmed || e.Tasks > 0 && !e.Limited
}

// estimateRun estimates what tasks may cost. limit is the budget of all tasks together;
// if it is zero, the budgets of their grimoires count.
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

// maxCost returns what tasks can cost at most. It is not limited if the grimoire of a task
// has no budget.
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
	return budget.Together(all), limited
}

func pastCost(p *project.Project) past {
	all, _ := p.Finder.Summaries() // the cost of what cannot be read is unknown
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
