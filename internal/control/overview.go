package control

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
)

// Overview is the state of a repository: its sessions, and the tasks that have none yet.
type Overview struct {
	Sessions []session.View    // as Sessions or CurrentSessions returns them
	Ready    []task.Task       // could run now, in order
	Waiting  []task.Waiting    // wait for other tasks
	NoTasks  error             // why the tracker's tasks are missing; nil if they are not
	Short    map[string]string // a unique prefix of each task ID
	Others   int               // sessions of other users, whose records are private
}

// OverviewOf returns the state of a repository, with every session or only the current ones.
func OverviewOf(ctx context.Context, p *project.Project, all bool) (Overview, error) {
	summaries, broken := p.Finder.Known()
	shown := current(summaries)
	if all {
		summaries, broken = p.Finder.Summaries()
		shown = summaries
	}
	sessions, err := views(p, shown, broken)
	if err != nil {
		return Overview{}, err
	}
	lost, err := p.Lost(ctx)
	if err != nil {
		return Overview{}, err
	}
	for _, l := range lost {
		sessions = append(sessions, l.View())
	}
	o := Overview{Sessions: sessions, Others: len(session.Foreign(p.Repo.Root))}
	tasks, err := o.readTasks(ctx, p, summaries)
	if cause := context.Cause(ctx); cause != nil {
		return o, cause
	}
	o.NoTasks = err
	var ids []string
	for _, s := range summaries {
		ids = append(ids, s.Task)
	}
	for _, v := range sessions {
		if v.Status == session.Damaged || v.Status == session.Gone {
			ids = append(ids, v.Task)
		}
	}
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	o.Short = project.ShortIDs(ids)
	return o, nil
}

// readTasks reads the tracker and returns all its tasks. Tasks of open sessions are neither
// ready nor waiting.
func (o *Overview) readTasks(ctx context.Context, p *project.Project, sessions []session.Summary) ([]task.Task, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return nil, err
	}
	all, err := tracker.List(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := tracker.Ready(ctx)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, s := range sessions {
		open[s.Task] = open[s.Task] || s.Live()
	}
	known := map[string]bool{}
	for _, t := range ready {
		known[t.ID] = true
		if !open[t.ID] {
			o.Ready = append(o.Ready, t)
		}
	}
	for _, w := range task.WaitingIn(all, p.Env.Now()) {
		if !open[w.ID] && !known[w.ID] {
			o.Waiting = append(o.Waiting, w)
		}
	}
	return all, nil
}

// StateSince returns the time when a session entered its state.
func StateSince(v session.View) time.Time {
	switch {
	case v.Status == session.Running:
		return v.Since
	case !v.Ended.IsZero():
		return v.Ended
	}
	return v.Updated
}

// Doing returns the current step of a running session and the last action of that step, which may be empty.
// For other sessions both are empty.
func Doing(v session.View) (step, action string) {
	if v.Shown().Status != session.Running || len(v.Steps) == 0 {
		return "", ""
	}
	last := v.Steps[len(v.Steps)-1]
	if v.Elsewhere() {
		return v.Away.Text(""), "after " + terminal.StepName(last.Path)
	}
	if v.Turn != nil {
		action := fmt.Sprintf("waits for its turn, position %d", v.Turn.Position)
		return terminal.StepName(last.Path), action + terminal.Colon(workspace.TurnDoing(*v.Turn))
	}
	return terminal.StepName(last.Path), last.Doing
}
