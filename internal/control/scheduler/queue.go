package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/collisions"
	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree/claim"
)

// NamedQueue holds the tasks that a person named. A task that depends on another named
// task waits until that task has ended.
type NamedQueue struct {
	todo []project.Item
	open map[string]bool // named and not done yet
}

// NewNamedQueue returns a queue of the tasks that a person named.
func NewNamedQueue(jobs []project.Item) *NamedQueue {
	p := &NamedQueue{open: map[string]bool{}}
	for _, item := range jobs {
		if !p.open[item.Task.ID] {
			p.todo = append(p.todo, item)
		}
		p.open[item.Task.ID] = true
	}
	return p
}

// Next implements Queue.
func (p *NamedQueue) Next(_ context.Context, _ map[string]bool) ([]project.Item, error) {
	return slices.DeleteFunc(slices.Clone(p.todo), p.isBlocked), nil
}

// isBlocked reports whether a task depends on another open task of the queue.
func (p *NamedQueue) isBlocked(item project.Item) bool {
	return slices.ContainsFunc(item.Task.DependsOn, func(d task.Dependency) bool {
		return d.ID != item.Task.ID && p.open[d.ID] && isBlocking(d.Type)
	})
}

// isBlocking reports whether a dependency of this type requires that the other task is
// done first.
func isBlocking(kind string) bool {
	return kind == "blocks" || kind == "conditional-blocks" || kind == "waits-for"
}

// Started implements Queue.
func (p *NamedQueue) Started(item project.Item) {
	p.todo = slices.DeleteFunc(p.todo, func(other project.Item) bool { return other.Task.ID == item.Task.ID })
}

// Done implements Queue.
func (p *NamedQueue) Done(item project.Item) { delete(p.open, item.Task.ID) }

// Left implements Queue.
func (p *NamedQueue) Left() int { return len(p.todo) }

// ReadyQueue holds the tasks whose coven was killed, followed by the tracker's ready tasks.
// Each runs once. With watch, a task whose change was rejected runs again. At last it holds the tasks that only wait for a pull request to be merged: they
// can start on its branch.
type ReadyQueue struct {
	project    *project.Project
	controller *control.Controller
	watch      bool                 // also resume waiting sessions
	tried      map[string]time.Time // when each task last started or ended

	// Options are those of the sessions that it starts.
	Options control.Options
	// Pulls returns those of the sessions whose pull request has changed: Controller.ChangedPulls. If it is nil, they are not resumed.
	Pulls       func(ctx context.Context, all []session.View, now bool) ([]session.View, error)
	active      map[string]task.Task // started by this queue and not done
	sent        map[string]bool      // tasks whose sessions the workers of other machines had when the queue began
	held        int                  // ready tasks that others hold back, see collisions.Holder
	merging     []string             // tasks whose pull request waits to be merged
	stacked     map[string]bool      // tasks that it started before the one on which they depend has landed
	hostProblem string               // the last problem of the host of pull requests, which is reported once
}

// changed returns those of the sessions whose pull request has changed. A problem of the host is an error once.
func (p *ReadyQueue) changed(ctx context.Context, published []session.View) ([]session.View, error) {
	if p.Pulls == nil {
		return nil, nil
	}
	changed, err := p.Pulls(ctx, published, false)
	if err == nil {
		p.hostProblem = ""
		return changed, nil
	}
	if err.Error() == p.hostProblem {
		return changed, nil
	}
	p.hostProblem = err.Error()
	return changed, fmt.Errorf("pull requests: %w", err)
}

// NewReadyQueue returns a queue of the ready tasks. With watch it also resumes
// waiting sessions.
func NewReadyQueue(p *project.Project, watch bool) *ReadyQueue {
	return &ReadyQueue{project: p, controller: &control.Controller{Project: p}, watch: watch, tried: map[string]time.Time{}, active: map[string]task.Task{}, sent: map[string]bool{}, stacked: map[string]bool{}}
}

// Next implements Queue.
func (p *ReadyQueue) Next(ctx context.Context, busy map[string]bool) ([]project.Item, error) {
	jobs, err := p.resumable(ctx, busy)
	tracker, trackerErr := p.project.Tasks()
	if trackerErr != nil {
		return jobs, errors.Join(err, trackerErr)
	}
	ready, readyErr := tracker.Ready(ctx)
	known, open := map[string]bool{}, slices.Collect(maps.Values(p.active))
	for _, item := range jobs {
		known[item.Task.ID] = true
	}
	p.merging = slices.DeleteFunc(p.merging, func(id string) bool { return known[id] })
	above, aboveErr := p.above(ctx, tracker)
	p.held = 0
	for _, t := range slices.Concat(ready, above) {
		if busy[t.ID] || known[t.ID] || !p.mayRun(t.ID) {
			continue
		}
		holder, holderErr := collisions.Holder(ctx, p.project, t, open...)
		if err = errors.Join(err, holderErr); holder != "" {
			p.held++
			continue
		}
		jobs, open = append(jobs, project.Item{Task: t, Tracker: tracker}), append(open, t)
	}
	return jobs, errors.Join(err, readyErr, aboveErr)
}

// above returns the tasks that only wait until the pull request of another task is merged, and land with a pull request themselves. Controller.Run stacks
// their changes on that one.
func (p *ReadyQueue) above(ctx context.Context, tracker task.Tracker) (above []task.Task, err error) {
	if len(p.merging) == 0 {
		return nil, nil
	}
	all, err := tracker.List(ctx)
	for _, t := range all {
		waits := slices.ContainsFunc(t.DependsOn, func(d task.Dependency) bool { return isBlocking(d.Type) && slices.Contains(p.merging, d.ID) })
		if _, tried := p.tried[t.ID]; tried || !waits || t.Status != task.StatusOpen || t.Assignee != "" || !t.Work() || t.DeferUntil.After(p.project.Env.Now()) {
			continue
		}
		blockers, blockersErr := tracker.Blockers(ctx, t.ID)
		if err = errors.Join(err, blockersErr); len(blockers) != 1 || !slices.Contains(p.merging, blockers[0]) {
			continue
		}
		plan, draftErr := planning.Draft(p.project, t, planning.Options{Grimoire: p.Options.Grimoire, Pull: p.Options.Pull})
		if draftErr == nil && plan.Grimoire.LandsByPullRequest() { // an error is reported when the task is ready
			above = append(above, t)
			p.stacked[t.ID] = true
		}
	}
	return above, err
}

// mayRun reports whether a task has not run yet, or may run again.
func (p *ReadyQueue) mayRun(id string) bool {
	at, tried := p.tried[id]
	if !tried || !p.watch {
		return !tried
	}
	v, err := p.project.Finder.OfTask(id)
	if errors.Is(err, session.ErrNone) {
		return p.stacked[id] // it could not start before it was ready
	}
	return err == nil && v.Status == session.Failed && v.Ended.After(at)
}

// resumable returns the tasks whose session can resume unattended. It also releases the claims
// of sessions that never started and cannot be recovered.
func (p *ReadyQueue) resumable(ctx context.Context, busy map[string]bool) ([]project.Item, error) {
	claims, err := claim.List(ctx, p.project.Repo)
	begins := len(p.tried) == 0 && len(busy) == 0
	var jobs []project.Item
	var again, published []session.View // the published ones wait for the host of their pull requests
	p.merging = nil
	for _, held := range claims {
		if busy[held.Task] {
			continue
		}
		v, began, err := p.sessionOf(held)
		if !began {
			jobs = append(jobs, p.neverStarted(ctx, held)...)
			continue
		}
		if err != nil || v.Task != held.Task {
			continue
		}
		if p.project.HalfDismissed(ctx, v) {
			p.controller.FinishDismissal(ctx, v)
			continue
		}
		if p.follows(v) {
			published = append(published, v)
		}
		if begins {
			p.sent[v.Task] = p.isSent(v)
		}
		if p.canResume(v) {
			again = append(again, v)
		}
	}
	changed, hostErr := p.changed(ctx, published)
	for _, v := range append(again, changed...) {
		if item, err := p.controller.ItemOf(v); err == nil {
			jobs = append(jobs, item)
		}
	}
	err = errors.Join(err, hostErr)
	if begins {
		jobs = append(jobs, p.unclaimed(claims)...)
	}
	return jobs, err
}

// isSent reports whether the workers of other machines have a session.
func (p *ReadyQueue) isSent(v session.View) bool {
	return p.project.Config.Run.On != "" && (v.WaitsForWorker() || v.Status == session.Running && v.Elsewhere())
}

// sessionOf returns the session of a claim. began is false if it never started.
func (p *ReadyQueue) sessionOf(held claim.Held) (v session.View, began bool, err error) {
	root := p.project.Repo.Root
	v, err = session.Load(filepath.Join(root, session.Dir, held.Session))
	began = err == nil && !v.Started.IsZero() || !session.NeverStarted(root, held.Session)
	return v, began, err
}

// follows reports whether the queue asks the host of a session's pull request. It notes those on which changes can be stacked.
func (p *ReadyQueue) follows(v session.View) bool {
	if !v.WaitsForHost() {
		return false
	}
	if v.Reason == event.WaitMerge && v.Pull.InBaseRepository() {
		p.merging = append(p.merging, v.Task)
	}
	return p.watch
}

// unclaimed returns the tasks of sessions whose coven was killed after it released the claim
// and before it recorded the end. It reads all sessions, so it is called only once, before any
// task runs.
func (p *ReadyQueue) unclaimed(claims []claim.Held) []project.Item {
	var jobs []project.Item
	all, _ := p.project.Finder.Known() // coven resume and coven doctor report damaged sessions
	for _, s := range project.Newest(all) {
		claimed := func(held claim.Held) bool { return held.Task == s.Task }
		if !s.Live() || slices.ContainsFunc(claims, claimed) {
			continue
		}
		v, err := s.View()
		if err != nil || !v.Crashed {
			continue
		}
		if item, err := p.controller.ItemOf(v); err == nil {
			jobs = append(jobs, item)
		}
	}
	return jobs
}

// neverStarted returns the task of a claim whose coven was killed before its session
// started. An ad-hoc prompt cannot be recovered.
func (p *ReadyQueue) neverStarted(ctx context.Context, held claim.Held) []project.Item {
	if _, tried := p.tried[held.Task]; tried {
		return nil
	}
	item, err := p.project.Tracked(ctx, held.Task)
	switch {
	case err == nil && item.Task.Status != task.StatusClosed:
		return []project.Item{item}
	case err == nil, errors.Is(err, task.ErrNotFound):
		_ = claim.Release(ctx, p.project.Repo, held.Task, held.Oid) // it fails if another coven has claimed the task
	}
	return nil
}

// limitPause is the shortest time before a watching coven resumes a session that waits for
// a rate limit.
const limitPause = 5 * time.Minute

// canResume reports whether a session can resume unattended: its coven was killed, workers had it when the queue began, another machine
// has landed it, or the reason for waiting may be gone.
func (p *ReadyQueue) canResume(v session.View) bool {
	at, tried := p.tried[v.Task]
	switch {
	case v.Crashed, p.sent[v.Task], v.Away != nil && v.Away.Landed != "":
		return !tried
	case v.Elsewhere():
		return false
	case !p.watch || v.Status != session.Waiting:
		return false
	case v.Reason == event.WaitCheckout, v.Reason == event.WaitRemote:
		return time.Since(at) >= pollEvery
	}
	now := p.project.Env.Now()
	if v.WaitsForDay() {
		return !now.Before(v.Until)
	}
	return (v.Reason == event.WaitLimit || v.Reason == event.WaitMerge && v.Pull == nil) && now.Sub(v.Updated) >= limitPause && !now.Before(v.Until)
}

// Started implements Queue.
func (p *ReadyQueue) Started(item project.Item) {
	if _, again := p.tried[item.Task.ID]; again {
		delete(p.stacked, item.Task.ID)
	}
	p.tried[item.Task.ID], p.active[item.Task.ID] = time.Now(), item.Task
}

// Done implements Queue.
func (p *ReadyQueue) Done(item project.Item) {
	p.tried[item.Task.ID] = time.Now()
	delete(p.active, item.Task.ID)
}

// Left implements Queue.
func (p *ReadyQueue) Left() int { return p.held }
