package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// namedPool are tasks that a person named. One that depends on another of them
// waits until that one has ended.
type namedPool struct {
	todo []job
	open map[string]bool // named, and not over yet
}

func newNamedPool(jobs []job) *namedPool {
	p := &namedPool{open: map[string]bool{}}
	for _, j := range jobs {
		if !p.open[j.task.ID] {
			p.todo = append(p.todo, j)
		}
		p.open[j.task.ID] = true
	}
	return p
}

func (p *namedPool) Next(_ context.Context, _ map[string]bool) ([]job, error) {
	return slices.DeleteFunc(slices.Clone(p.todo), p.waits), nil
}

// waits says whether a task depends on one of the others.
func (p *namedPool) waits(j job) bool {
	return slices.ContainsFunc(j.task.DependsOn, func(d task.Dependency) bool {
		return d.ID != j.task.ID && p.open[d.ID] && holdsBack(d.Type)
	})
}

// holdsBack says whether a dependency of this type means that the other task
// comes first.
func holdsBack(kind string) bool {
	return kind == "blocks" || kind == "conditional-blocks" || kind == "waits-for"
}

func (p *namedPool) Started(j job) {
	p.todo = slices.DeleteFunc(p.todo, func(other job) bool { return other.task.ID == j.task.ID })
}

func (p *namedPool) Done(j job) { delete(p.open, j.task.ID) }

func (p *namedPool) Left() int { return len(p.todo) }

// readyPool are the tasks that the tracker says are ready, and before them those
// whose coven was killed. Each is run once; a watching coven runs those again
// whose change a person rejected: the next attempt is told why.
type readyPool struct {
	house *house
	desk  *desk
	watch bool                 // go on with sessions that wait, too
	tried map[string]time.Time // when the run of a task ended
}

func newReadyPool(h *house, watch bool) *readyPool {
	return &readyPool{house: h, desk: &desk{house: h}, watch: watch, tried: map[string]time.Time{}}
}

func (p *readyPool) Next(ctx context.Context, busy map[string]bool) ([]job, error) {
	jobs, err := p.parked(ctx, busy)
	tracker, trackerErr := p.house.tasks()
	if trackerErr != nil {
		return jobs, errors.Join(err, trackerErr)
	}
	ready, readyErr := tracker.Ready(ctx)
	known := map[string]bool{}
	for _, j := range jobs {
		known[j.task.ID] = true
	}
	for _, t := range ready {
		if busy[t.ID] || known[t.ID] || !p.again(t.ID) {
			continue
		}
		jobs = append(jobs, job{task: t, tracker: tracker})
	}
	return jobs, errors.Join(err, readyErr)
}

// again says whether a task may be run: for the first time, or anew.
func (p *readyPool) again(id string) bool {
	at, tried := p.tried[id]
	if !tried || !p.watch {
		return !tried
	}
	v, err := p.house.finder.OfTask(id)
	return err == nil && v.Status == session.Failed && v.Ended.After(at)
}

// parked are the tasks whose session could go on without a person. Claims that
// nobody will use are given back on the way.
func (p *readyPool) parked(ctx context.Context, busy map[string]bool) ([]job, error) {
	claims, err := p.house.repo.Claims(ctx)
	var jobs []job
	for _, held := range claims {
		if busy[held.Task] {
			continue
		}
		if session.NeverBegan(p.house.repo.Root, held.Session) {
			jobs = append(jobs, p.forgotten(ctx, held)...)
			continue
		}
		v, err := session.Load(filepath.Join(p.house.repo.Root, session.Dir, held.Session))
		if err != nil || v.Task != held.Task {
			continue
		}
		if p.house.halfDismissed(ctx, v) {
			p.desk.finishDismissal(ctx, v)
			continue
		}
		if !p.goesOn(v) {
			continue
		}
		if j, err := p.desk.jobOf(v); err == nil {
			jobs = append(jobs, j)
		}
	}
	if len(p.tried) == 0 && len(busy) == 0 {
		jobs = append(jobs, p.unclaimed(claims)...)
	}
	return jobs, err
}

// unclaimed are the tasks of sessions whose coven was killed after it gave the
// claim back and before it recorded its end. All sessions are read for them: it is
// done once, before anything runs.
func (p *readyPool) unclaimed(claims []worktree.Held) []job {
	var jobs []job
	views, _ := session.List(p.house.repo.Root) // who cannot be read is named by coven resume and coven doctor
	for _, v := range newest(views) {
		claimed := func(held worktree.Held) bool { return held.Task == v.Task }
		if !v.Crashed || slices.ContainsFunc(claims, claimed) {
			continue
		}
		if j, err := p.desk.jobOf(v); err == nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// forgotten is the task of a claim whose coven was killed before its session
// began. One of the user's own words is forgotten indeed.
func (p *readyPool) forgotten(ctx context.Context, held worktree.Held) []job {
	if _, tried := p.tried[held.Task]; tried {
		return nil
	}
	j, err := p.house.tracked(ctx, held.Task)
	switch {
	case err == nil && j.task.Status != task.StatusClosed:
		return []job{j}
	case err == nil, errors.Is(err, task.ErrNotFound):
		_ = p.house.repo.Unclaim(ctx, held.Task, held.Oid) // who else takes it may
	}
	return nil
}

// limitPause is how long a watching coven lets a rate limit be that it did not
// wait for, also when nobody knows how long it lasts.
const limitPause = 5 * time.Minute

// goesOn says whether a session needs nobody's word to go on: its coven was
// killed, or what it waits for may have changed.
func (p *readyPool) goesOn(v session.View) bool {
	at, tried := p.tried[v.Task]
	switch {
	case v.Crashed:
		return !tried
	case !p.watch || v.Status != session.Waiting:
		return false
	case v.Reason == event.WaitCheckout:
		return time.Since(at) >= pollEvery
	}
	now := p.house.env.now()
	return v.Reason == event.WaitLimit && now.Sub(v.Updated) >= limitPause && !now.Before(v.Until)
}

func (p *readyPool) Started(j job) { p.tried[j.task.ID] = time.Now() }

func (p *readyPool) Done(j job) { p.tried[j.task.ID] = time.Now() }

func (p *readyPool) Left() int { return 0 }
