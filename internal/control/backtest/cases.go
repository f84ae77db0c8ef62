package backtest

import (
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/scratch"
)

// The selections of sessions.
const (
	OnLanded = "landed" // the newest sessions that have landed
	OnEnded  = "ended"  // the newest sessions that have ended
)

// Case is a recorded session whose task can run again.
type Case struct {
	View   session.View
	Plan   *grimoires.Plan
	Checks []check.Check // that the change had to pass

	step *step // nil if the whole workflow runs again
}

// Select returns the sessions to run again: OnLanded, OnEnded, or the names of tasks and sessions. At most newest sessions
// are selected by OnLanded and OnEnded, newest first. A named session that cannot run again is an error. With the name of a step,
// only the sessions that have run it can run again.
func Select(ctx context.Context, p *project.Project, on []string, newest int, step string) ([]Case, error) {
	var cases []Case
	add := func(one Case) {
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.View.ID == one.View.ID }) {
			cases = append(cases, one)
		}
	}
	for _, name := range on {
		if name == OnLanded || name == OnEnded {
			found, err := ended(ctx, p, name == OnLanded, newest, step)
			if err != nil {
				return nil, err
			}
			for _, one := range found {
				add(one)
			}
			continue
		}
		v, err := p.SessionOf(ctx, name)
		if err != nil {
			return nil, err
		}
		one, err := caseOf(ctx, p, v, step)
		if err != nil {
			return nil, exit.Usagef("coven sessions list", "session %s cannot run again: %w", v.ID, err)
		}
		add(one)
	}
	return cases, nil
}

// ended returns the newest sessions that can run again.
func ended(ctx context.Context, p *project.Project, landed bool, newest int, step string) (cases []Case, err error) {
	all, err := p.Finder.Summaries()
	if _, err = session.DamagedIn(err); err != nil {
		return nil, err
	}
	for _, s := range all {
		if len(cases) == newest {
			break
		}
		if !s.IsOver() || landed && s.Status != session.Completed {
			continue
		}
		v, err := s.View()
		if err != nil || landed && v.Commit == "" {
			continue // damaged sessions are reported by coven status
		}
		if one, err := caseOf(ctx, p, v, step); err == nil {
			cases = append(cases, one)
		}
	}
	return cases, nil
}

// caseOf returns the case of a session, or the reason why it cannot run again.
func caseOf(ctx context.Context, p *project.Project, v session.View, step string) (Case, error) {
	if !session.SummaryOf(p.Repo.Root, v).IsOver() {
		return Case{}, errors.New("it has not ended")
	}
	plan, err := project.PlanOf(v.Dir)
	if err != nil {
		return Case{}, err
	}
	if plan.Chat != nil || plan.Spawn != nil {
		return Case{}, errors.New("it ran no workflow")
	}
	c := Case{View: v, Plan: plan, Checks: plan.Checks}
	for s := range plan.Grimoire.All() {
		if m, ok := s.Kind.(*grimoires.Merge); ok {
			c.Checks = plan.ChecksOf(m)
		}
	}
	if len(c.Checks) == 0 {
		return Case{}, errors.New("it had no checks that could judge the result")
	}
	if _, err := diff.ShowCommit(ctx, p.Repo, v.Info.Base); err != nil {
		return Case{}, errors.New("the commit that it started from no longer exists")
	}
	start := v.Info.Base
	if step != "" {
		if c.step, err = stepOf(ctx, p.Repo, c, step); err != nil {
			return c, err
		}
		start = c.step.start.Snapshot.Tip
	}
	complete, err := scratch.IsComplete(ctx, p.Repo, start)
	if err == nil && !complete {
		err = errors.New("this partial clone lacks files that it started from; get them with: git fetch --refetch --no-filter")
	}
	return c, err
}
