package run

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// maxUnconfirmed is the number of tasks that run without confirmation.
const maxUnconfirmed = 5

// extent is the number and the possible cost of tasks to run.
type extent struct {
	Tasks  int
	AtOnce int
	// Max is the maximum cost of the tasks. It is valid only if Limited is set.
	Max     budget.Amount
	Limited bool
}

// needsConfirmation reports whether to ask the user before the tasks run: there are many of them, or
// nothing limits their cost.
func (e extent) needsConfirmation() bool {
	return e.Tasks > maxUnconfirmed || e.Tasks > 0 && !e.Limited
}

// extentOf returns the extent of tasks. limit is the budget of all tasks together; if it is zero, the
// budgets of their grimoires count.
func extentOf(p *project.Project, items []project.Item, grimoire string, limit budget.Amount, atOnce int) extent {
	e := extent{Tasks: len(items), AtOnce: min(atOnce, len(items)), Max: limit, Limited: true}
	if limit == (budget.Amount{}) {
		e.Max, e.Limited = maxCost(p, items, grimoire)
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

// estimates are the estimated costs of a task, by grimoire.
type estimates struct {
	project *project.Project
	names   []string // in the order of the first task
	of      map[string]*spending.Estimate
}

// add returns the estimate for a grimoire. It is nil if too few sessions with that grimoire have ended.
func (e *estimates) add(grimoire string) *spending.Estimate {
	if slices.Contains(e.names, grimoire) {
		return e.of[grimoire]
	}
	if e.of == nil {
		e.of = map[string]*spending.Estimate{}
	}
	e.names = append(e.names, grimoire)
	all, _ := e.project.Finder.Known() // the cost of unreadable sessions is unknown
	if found, ok := spending.EstimateOf(all, grimoire); ok {
		e.of[grimoire] = &found
	}
	return e.of[grimoire]
}

// lines describes the estimates, one per line.
func (e *estimates) lines() (lines []string) {
	for _, name := range e.names {
		if found := e.of[name]; found != nil {
			lines = append(lines, estimateText(name, *found))
		}
	}
	return lines
}

func estimateText(grimoire string, e spending.Estimate) string {
	text := fmt.Sprintf("estimate for each task of %s, from the last %s: median %s, 90th percentile %s",
		terminal.Printable(grimoire), oneline.Count(e.Sessions, "session"), budget.Amount{USD: e.Median}, budget.Amount{USD: e.P90})
	if c := e.Calibration; c.Sessions > 0 {
		text += fmt.Sprintf(" (%d of the last %s stayed within their estimated 90th percentile)", c.Within, oneline.Count(c.Sessions, "session"))
	}
	return text
}

// printEstimates prints the estimated costs of tasks.
func (o *runOptions) printEstimates(p *project.Project, items []project.Item) error {
	e := estimates{project: p}
	for _, item := range items {
		if choice, err := p.GrimoireOf(item.Task, o.grimoire); err == nil {
			e.add(choice.Grimoire)
		}
	}
	for _, line := range e.lines() {
		if err := o.app.Printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
