// Package backtest runs the tasks of recorded sessions again, with the present workflows or changed ones, and compares
// the results with the recorded ones.
//
// Each run has a repository of its own, which borrows the objects of the user's repository and starts at the commit that
// the recorded session started from: see package scratch. The change lands there, on a branch of its own, if
// the checks of the recorded session pass. So a run uses the whole workflow including its merge step, and changes no
// branch, worktree, claim, task or session of the user's repository. The repositories of killed processes are removed by
// the next process that makes a temporary directory.
package backtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/approval"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree/scratch"
)

// Approver is recorded as the approver of the changes that land in scratch repositories.
const Approver = "coven grimoires backtest"

// Spender is the task of backtests in the spending of the repository.
const Spender = "(backtest)"

// Request describes the runs: each case with each grimoire.
type Request struct {
	Changes
	Grimoires []string
	Step      string // the step of the grimoires that runs again; empty for all steps
	Cases     []Case
	Provider  string // empty for the configured one
	Model     string // empty for the configured one
	Width     int    // runs at the same time
	Budget    budget.Amount
}

// Run runs the cases. It calls ended after each run, one call at a time. When the budget is spent or ctx is canceled, no
// more runs start, and those that have started are not finished: the report counts them as unfinished.
func Run(ctx context.Context, c *control.Controller, r Request, ended func(Result)) (Report, error) {
	if err := c.Preflight(ctx, nil, control.Options{}); err != nil { // the user accepts a missing sandbox in this repository
		return Report{}, err
	}
	if c.Parking != nil {
		defer c.Parking()() // until the repositories are removed
	}
	temp, err := tempdir.New(os.TempDir())
	if err != nil {
		return Report{}, err
	}
	defer temp.Close() //nolint:errcheck // the next process removes the rest
	definitions := filepath.Join(temp.Path(), "definitions")
	others, err := r.write(c.Project, definitions)
	if err != nil {
		return Report{}, err
	}
	book, err := c.Project.Ledger.NewBook()
	if err != nil {
		return Report{}, err
	}
	b := &backtest{Request: r, book: book, others: others, project: c.Project, library: c.Project.Library.Over(definitions), dir: temp.Path(), parking: c.Parking, spent: budget.New(r.Budget)}
	report := r.report(b.all(ctx, ended))
	report.Spent, report.Today = b.spent.Reached(), b.today()
	return report, book.Close()
}

type backtest struct {
	Request
	others  map[string][]string // names of the steps that do not run, by grimoire
	project *project.Project
	library *grimoires.Library
	dir     string
	parking func() (done func())
	spent   *budget.Budget
	book    *spending.Book
}

// today says that the budget of the day is spent. It returns "" if it is not, or unknown: then an agent reports it.
func (b *backtest) today() string {
	day, err := b.project.Ledger.Today()
	if err != nil {
		return ""
	}
	return day.Spent()
}

// all runs each case with each grimoire. The grimoires take turns, so that a spent budget leaves all of them with about
// the same cases.
func (b *backtest) all(ctx context.Context, ended func(Result)) []Result {
	results := make([]Result, 0, len(b.Cases)*len(b.Grimoires))
	for _, one := range b.Cases {
		for _, name := range b.Grimoires {
			results = append(results, Result{Session: one.View.ID, Task: one.View.Task, Grimoire: name, Status: Unfinished, Detail: NotStarted, of: one})
		}
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, max(b.Width, 1))
	for i := range results {
		free <- struct{}{}
		if ctx.Err() != nil || b.spent.Reached() != "" || b.today() != "" {
			break
		}
		running.Go(func() {
			defer func() { <-free }()
			dir := filepath.Join(b.dir, strconv.Itoa(i))
			b.run(ctx, dir, i, &results[i])
			_ = tempdir.Remove(dir) // the directory of all runs is removed later
			mu.Lock()
			defer mu.Unlock()
			ended(results[i])
		})
	}
	running.Wait()
	return results
}

// run runs a case and completes its result.
func (b *backtest) run(ctx context.Context, dir string, n int, r *Result) {
	if err := b.try(ctx, dir, n, r); err != nil {
		r.Status, r.Detail = Unfinished, b.project.Hidden(err.Error())
	}
}

func (b *backtest) try(ctx context.Context, dir string, n int, r *Result) error {
	cfg := settings(b.project.Config)
	cfg.Checks = r.of.Checks
	base := r.of.View.Info.Base
	if r.of.step != nil {
		base = r.of.step.start.Base
	}
	if err := scratch.Make(ctx, b.project.Repo, dir, base); err != nil {
		return err
	}
	p, err := b.project.Scratch(ctx, dir, cfg, b.library)
	if err != nil {
		return err
	}
	c, err := control.New(p)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Approver, c.Budget, c.Parking = Approver, b.spent, b.parking
	c.Unsandboxed = func(context.Context, string) (bool, error) { return true, nil } // see Run
	c.Observer.Event = b.book.Observe(n, Spender, approval.Deny(p, Approver))
	item := project.Item{Task: taskOf(r.of.Plan.Task), Prompt: r.of.Plan.Task.Title}
	options := control.Options{Grimoire: r.Grimoire, Provider: b.Provider, Model: b.Model, Onto: scratch.Branch}
	if of := r.of.step; of != nil {
		options.Given = of.givenOf(b.others[r.Grimoire])
		if options.Base, err = scratch.Commit(ctx, p.Repo, of.start.Snapshot); err != nil {
			return err
		}
	}
	outcome, err := c.Run(ctx, item, options)
	if err != nil {
		return err
	}
	v, err := session.Load(filepath.Join(p.Repo.Root, session.Dir, outcome.Session))
	if err != nil {
		return err
	}
	plan, err := project.PlanOf(v.Dir)
	if err != nil {
		return err
	}
	r.USD, r.Time = v.Used.USD, v.Active
	if b.Step != "" {
		run, _, err := spending.FirstRun(v.Dir, pathTo(plan.Grimoire.Steps, b.Step))
		if err != nil {
			return err
		}
		r.USD, r.Time = run.Used.USD, run.Used.Wall
	}
	switch {
	case v.Commit != "":
		r.Status, r.FirstTry = Landed, firstTry(v, plan)
		r.Detail = ""
		return r.compare(ctx, b.project.Repo, p.Repo, v)
	case ctx.Err() != nil, b.spent.Reached() != "", v.WaitsForDay(), outcome.ExitCode() == exit.Limit, v.Used.Tokens == 0 && v.Used.USD == 0: // the last: no model has answered
		r.Status = Unfinished
	default:
		r.Status = Failed
	}
	r.Detail = b.project.Hidden(outcome.Detail)
	return nil
}

// settings returns the settings of a scratch repository: nothing is sent, fetched or notified.
func settings(cfg config.Config) config.Config {
	cfg.Notify, cfg.Telemetry, cfg.GC.Auto, cfg.PriorAttempt = nil, config.Telemetry{}, false, false
	cfg.Worktree.Base, cfg.Worktree.PoolGB = "target", 0
	if cfg.Landing.Strategy == grimoires.PullRequest {
		cfg.Landing.Strategy = "squash"
	}
	return cfg
}

func taskOf(t grimoires.Task) task.Task {
	return task.Task{
		ID: t.ID, Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Design: t.Design, Notes: t.Notes,
		Type: t.Type, Priority: t.Priority, Labels: t.Labels, Parent: t.Parent, ExternalRef: t.ExternalRef,
	}
}

// Changes are the changes to the grimoires of a backtest.
type Changes struct {
	Agent     string            // of all agent steps; empty for those of the grimoire
	Reviewers []string          // plugins of all review steps; empty for those of the grimoire
	Prompts   map[string]string // texts of prompts, by name
}

// Check returns an error if the grimoires cannot run with the changes.
func Check(p *project.Project, r Request) error {
	temp, err := tempdir.New(os.TempDir())
	if err != nil {
		return err
	}
	_, err = r.write(p, temp.Path())
	return errors.Join(err, temp.Close())
}

// write checks the grimoires, and writes them and the prompts with the changes to dir, which has the layout of .coven. It returns the
// names of the steps that do not run, by grimoire. Merge steps squash the change onto the scratch branch, if the checks of the
// recorded session pass.
func (r Request) write(p *project.Project, dir string) (others map[string][]string, err error) {
	for _, sub := range []string{"grimoires", "prompts"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("write the changed workflow: %w", err)
		}
	}
	for name, text := range r.Prompts {
		if _, err := p.Library.Prompt(name); err != nil {
			return nil, exit.Usagef("coven prompts list", "--prompt: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "prompts", name+".md"), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the changed prompt: %w", err)
		}
	}
	used := map[string]bool{}
	others = map[string][]string{}
	for _, name := range r.Grimoires {
		if others[name], err = r.writeOne(p, name, dir, used); err != nil {
			return nil, err
		}
	}
	for name := range r.Prompts {
		switch {
		case used[name]:
		case r.Step != "":
			return nil, exit.Usagef("coven grimoires show "+r.Grimoires[0], "--prompt %s: step %s does not use this prompt", name, r.Step)
		default:
			return nil, exit.Usagef("coven grimoires show "+r.Grimoires[0], "--prompt %s: no step uses this prompt", name)
		}
	}
	return others, nil
}

// writeOne writes one grimoire. It adds the prompts of the steps that run to used, and returns the names of the other steps.
func (r Request) writeOne(p *project.Project, name, dir string, used map[string]bool) (others []string, err error) {
	g, err := p.Library.Load(name)
	if err != nil {
		return nil, err
	}
	if r.Step != "" {
		if others, err = only(g, r.Step); err != nil {
			return nil, err
		}
	}
	if err := r.apply(g, others); err != nil {
		return nil, err
	}
	text, err := g.YAML()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "grimoires", name+".yaml"), text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the changed workflow: %w", err)
	}
	plan, err := p.Library.Over(dir).Freeze(g, nil)
	if err != nil {
		return nil, err
	}
	for prompt := range plan.Prompts {
		used[prompt] = used[prompt] || !namedOnlyBy(g, prompt, others)
	}
	return others, nil
}

// namedOnlyBy reports whether only these steps name a prompt. Prompts that other prompts include are named by no step.
func namedOnlyBy(g *grimoires.Grimoire, prompt string, steps []string) bool {
	named := false
	for s := range g.All() {
		if slices.Contains(s.Prompts(), prompt) {
			if !slices.Contains(steps, s.Name) {
				return false
			}
			named = true
		}
	}
	return named
}

// apply changes the steps of a grimoire, except the given ones.
func (c Changes) apply(g *grimoires.Grimoire, except []string) error {
	var merges, agents, reviews int
	for s := range g.All() {
		if slices.Contains(except, s.Name) {
			continue
		}
		switch kind := s.Kind.(type) {
		case *grimoires.Merge:
			merges++
			kind.Checks, kind.Strategy, kind.Push = nil, "squash", false
		case *grimoires.Agent:
			agents++
			if c.Agent != "" {
				kind.Agent = c.Agent
			}
		case *grimoires.Review:
			reviews++
			kind.Reviewers = c.reviewers(kind.Reviewers)
		case *grimoires.AgentLoop:
			reviews++
			kind.Reviewers = c.reviewers(kind.Reviewers)
		}
	}
	show := "coven grimoires show " + g.Name
	switch {
	case merges == 0:
		return exit.Usagef(show, "grimoire %s has no merge step: no checks judge its result", g.Name)
	case c.Agent != "" && agents == 0:
		return exit.Usagef(show, "--agent %s: grimoire %s has no agent step", c.Agent, g.Name)
	case len(c.Reviewers) > 0 && reviews == 0:
		return exit.Usagef(show, "--reviewer %s: grimoire %s has no review step", c.Reviewers[0], g.Name)
	}
	return nil
}

func (c Changes) reviewers(own []grimoires.Reviewer) []grimoires.Reviewer {
	if len(c.Reviewers) == 0 {
		return own
	}
	var all []grimoires.Reviewer
	for _, name := range slices.Compact(slices.Sorted(slices.Values(c.Reviewers))) {
		all = append(all, grimoires.Reviewer{Name: name, Plugin: name})
	}
	return all
}
