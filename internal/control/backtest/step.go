package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/scratch"
	"github.com/coven-run/coven/worktree/snapshot"
)

// step is a recorded step, which runs again from its start.
type step struct {
	start scratch.Start
	given map[string]grimoires.Given // results of the steps that had ended before, by their names
	first bool                       // the change landed with it as it was
	used  budget.Amount
}

// stepOf returns the first run of a step in a session, or the reason why it cannot run again.
func stepOf(ctx context.Context, repo *worktree.Repo, c Case, name string) (*step, error) {
	run, ok, err := spending.FirstRun(c.View.Dir, pathTo(c.Plan.Grimoire.Steps, name))
	if err == nil && !ok {
		err = fmt.Errorf("it ran no step %s", name)
	}
	if err != nil {
		return nil, err
	}
	s := &step{first: firstTry(run.After, c.Plan), used: run.Used}
	s.start, err = scratch.StartOf(ctx, repo, run.Snapshot, cmp.Or(c.View.Landed.Old, c.View.Info.Base))
	if errors.Is(err, snapshot.ErrNone) {
		return nil, fmt.Errorf("the snapshot that step %s began from no longer exists", name)
	} else if err != nil {
		return nil, err
	}
	s.start.Base = cmp.Or(run.Landed, s.start.Base)
	if s.given, err = engine.Given(ctx, c.Plan, run.Before); err != nil {
		return nil, fmt.Errorf("the steps before %s cannot be read: %w", name, err)
	}
	return s, nil
}

// pathTo returns the names of the steps around a step of a grimoire, outermost first, and its own name. It is nil if the grimoire has
// no such step.
func pathTo(steps []grimoires.Step, name string) []string {
	for _, s := range steps {
		if s.Name == name {
			return []string{name}
		}
		if inner := pathTo(s.Inner(), name); inner != nil {
			return append([]string{s.Name}, inner...)
		}
	}
	return nil
}

// only changes a grimoire so that only one of its steps runs, and then the merge step after it. The results of the other steps are
// given: those that the recorded session had, and those of skipped steps. It returns the names of the other steps.
func only(g *grimoires.Grimoire, name string) (others []string, err error) {
	show := "coven grimoires show " + g.Name
	path := pathTo(g.Steps, name)
	if path == nil {
		return nil, exit.Usagef(show, "--step %s: grimoire %s has no such step", name, g.Name)
	}
	top := slices.IndexFunc(g.Steps, func(s grimoires.Step) bool { return s.Name == path[0] })
	merges := func(s grimoires.Step) bool {
		_, ok := s.Kind.(*grimoires.Merge)
		return ok
	}
	if merges(g.Steps[top]) {
		return nil, exit.Usagef(show, "--step %s: it lands the change, and does no work that a backtest can compare", name)
	}
	land := slices.IndexFunc(g.Steps[top:], merges)
	if land < 0 {
		return nil, exit.Usagef(show, "--step %s: grimoire %s has no merge step after it: no checks judge its result", name, g.Name)
	}
	g.Steps[top+land].When = ""
	keep := map[string]bool{g.Steps[top+land].Name: true}
	isolate(&g.Steps[top], path, keep)
	for s := range g.All() {
		if !keep[s.Name] {
			others = append(others, s.Name)
		}
	}
	return others, nil
}

// isolate makes the loops around the step at a path end after it. It adds the names of the loops, and of the step with everything in
// it, to keep.
func isolate(s *grimoires.Step, path []string, keep map[string]bool) {
	s.When, keep[s.Name] = "", true
	if len(path) == 1 {
		s.OnFail = grimoires.Block
		for inner := range (&grimoires.Grimoire{Steps: s.Inner()}).All() {
			keep[inner.Name] = true
		}
		return
	}
	if of, ok := s.Kind.(*grimoires.AgentLoop); ok { // without its review
		s.Kind = &grimoires.Loop{MaxIterations: of.MaxIterations, OnMaxIterations: of.OnMaxIterations, Steps: of.Steps}
	}
	inner := s.Inner()
	i := slices.IndexFunc(inner, func(one grimoires.Step) bool { return one.Name == path[1] })
	inner[i].ExitLoop = true
	isolate(&inner[i], path[1:], keep)
}

// givenOf returns the results of the other steps of a grimoire.
func (s *step) givenOf(others []string) map[string]grimoires.Given {
	all := maps.Clone(s.given)
	maps.DeleteFunc(all, func(name string, _ grimoires.Given) bool { return !slices.Contains(others, name) })
	for _, name := range others {
		if _, ok := all[name]; !ok {
			all[name] = grimoires.Given{}
		}
	}
	return all
}
