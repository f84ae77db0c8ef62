package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/collision"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// Reason explains the state of a task, with one reason and one command.
type Reason struct {
	Task   string `json:"task"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Next   string `json:"next,omitempty"`
	// Or lists other commands that a person may choose.
	Or []string `json:"or,omitempty"`
	// Turn is set while the task waits for its turn to land.
	Turn *session.Turn `json:"turn,omitempty"`
	// Collisions are predicted conflicts with the changes of other tasks.
	Collisions []collision.Collision `json:"collisions,omitempty"`
}

// Why explains the state of the task that name identifies.
func Why(ctx context.Context, p *project.Project, name string) (Reason, error) {
	r, err := whyExactly(ctx, p, name)
	if !errors.Is(err, task.ErrNotFound) && (err == nil || p.NoTasks == nil) {
		return r, err
	}
	id, err := p.Resolve(ctx, name, project.Known)
	if err != nil {
		return Reason{}, err
	}
	return whyExactly(ctx, p, id)
}

// whyExactly explains the state of the task with the given ID.
func whyExactly(ctx context.Context, p *project.Project, id string) (Reason, error) {
	v, err := p.Finder.OfTask(id)
	damaged := (*session.DamagedError)(nil)
	switch {
	case errors.As(err, &damaged):
		return Reason{Task: id, State: string(session.Damaged), Reason: oneline.Of(damaged.Error()), Next: damaged.NextCommand()}, nil
	case errors.Is(err, session.ErrNone):
		lost := (*project.LostError)(nil)
		if errors.As(p.CheckLost(ctx, id), &lost) {
			return Reason{Task: id, State: string(session.Gone), Reason: lost.Error(), Next: lost.NextCommand()}, nil
		}
		return whyTask(ctx, p, id)
	case err != nil:
		return Reason{}, err
	}
	r := Reason{Task: id, State: StateOf(v), Reason: DetailOf(v), Next: NextOf(v), Collisions: collisions(p, v)}
	if v.Damage != "" && v.Status != session.Running {
		r.Reason = fmt.Sprintf("session %s is damaged: %s", v.ID, v.Damage)
		return r, nil
	}
	switch v.Status {
	case session.Running:
		if shown := v.Shown(); shown.Reason == event.WaitApproval {
			r.Reason, r.Next = shown.Detail, shown.Next
			return r, nil
		}
		v.Turn = workspace.TurnOf(p.Repo, v)
		r.Reason, r.Next, r.Turn = atWork(p, v), "coven attach "+shellword.Word(id), v.Turn
	case session.Waiting:
		return whyWaiting(ctx, p, v, r)
	case session.Completed:
		r.Reason, r.Next = "nothing changed"+terminal.Colon(v.Summary), "coven logs "+shellword.Word(id)
		if v.Commit != "" {
			r.Reason, r.Next = "landed as "+v.Commit+v.Landed.Together()+terminal.Colon(v.Summary), "git show "+v.Commit
		}
	case session.Blocked:
		r.Reason = v.Cause(DetailOf(v))
		if changed := planning.Changed(ctx, p, v); len(changed) > 0 {
			r.Reason, r.Next = r.Reason+"; "+planning.Text(changed), newSettings(v)
		}
		r.Or = orBlocked(v, r.Next)
	case session.Failed, session.Cancelled:
		r.Reason = v.Cause(DetailOf(v))
		return anew(ctx, p, v, r)
	case session.Interrupted:
		r.Reason = interrupted(p, v)
	}
	return r, nil
}

// whyWaiting explains a waiting session. Only the budget of a day needs more than the record.
func whyWaiting(ctx context.Context, p *project.Project, v session.View, r Reason) (Reason, error) {
	if !v.WaitsForDay() {
		return r, nil
	}
	var err error
	r.Reason, r.Next, r.Or, err = p.WhyDay(ctx, v)
	return r, err
}

// collisions returns the predicted conflicts of a session.
func collisions(p *project.Project, v session.View) []collision.Collision {
	all, _ := p.Finder.Known() // damaged sessions have none
	return collision.Of(p.Repo.Root, session.LiveStatuses(all))[v.ID]
}

// orBlocked returns the commands to recommend for a blocked session beside the next one.
func orBlocked(v session.View, next string) (commands []string) {
	id := shellword.Word(v.Task)
	if next == check.Change { // the user may install the program instead
		commands = append(commands, "coven resume "+id)
	}
	if Refusal(OpRevise, v) == nil {
		commands = append(commands, "coven revise "+id+" -m TEXT")
	}
	return append(commands, "coven reject "+id+" --reason TEXT")
}

// anew adds the command that runs a task again after its session has ended, or the reason that it cannot
// run now.
func anew(ctx context.Context, p *project.Project, v session.View, r Reason) (Reason, error) {
	_, err := p.Repo.Find(ctx, v.Task)
	switch {
	case err == nil && Refusal(OpRetry, v) == nil:
		return r, nil // its worktree can be used
	case err != nil && !errors.Is(err, worktree.ErrNoWorktree):
		return r, err
	}
	r.Next = again(v)
	if v.Info.Tracker == project.NoTracker {
		return r, nil
	}
	now, err := whyTask(ctx, p, v.Task)
	switch {
	case errors.Is(err, task.ErrNotFound):
		r.Reason, r.Next = r.Reason+"; the task is no longer in the tracker", "coven logs "+shellword.Word(v.Task)
	case err != nil:
		return r, err
	case now.Next != r.Next:
		r.Reason, r.Next = r.Reason+"; now "+now.State+": "+now.Reason, now.Next
	}
	return r, nil
}

// atWork describes the current work of a running session with its process and duration, or the turn that it
// waits for before it lands.
func atWork(p *project.Project, v session.View) string {
	now := p.Env.Now()
	if v.Elsewhere() {
		return fmt.Sprintf("at work %s: after %s (%s ago)", v.Away.Text(""), cmp.Or(v.At(), "its start"), age(now, v.Updated))
	}
	if v.Parked != nil {
		return fmt.Sprintf("%s (pid %s for %s)", terminal.Limit(*v.Parked, now), holder.PidOf(v.Holder), age(now, v.Since))
	}
	if v.Turn != nil {
		return workspace.TurnText(*v.Turn, now)
	}
	return fmt.Sprintf("at work: %s (pid %s for %s)", v.At(), holder.PidOf(v.Holder), age(now, v.Since))
}

func age(now, since time.Time) time.Duration { return max(now.Sub(since), 0).Round(time.Second) }

// FullDisk is the number of free bytes below which a disk counts as full: too few for a
// journal and a snapshot.
const FullDisk = 1 << 20

// interrupted returns why a session was interrupted. A full disk stops sessions without a recorded reason.
func interrupted(p *project.Project, v session.View) string {
	var disk syscall.Statfs_t
	if syscall.Statfs(p.Repo.GitDir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < FullDisk {
		return "the disk is full: free some space first (" + oneline.Of(v.Detail) + ")"
	}
	return oneline.Of(v.Detail)
}

// whyTask explains a task that was never run.
func whyTask(ctx context.Context, p *project.Project, id string) (Reason, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return Reason{}, err
	}
	t, err := tracker.Get(ctx, id)
	if err != nil {
		return Reason{}, err
	}
	ready, err := tracker.Ready(ctx)
	if err != nil {
		return Reason{}, err
	}
	for _, other := range ready {
		if other.ID == id {
			reason, next, err := p.WhyReady(ctx, id)
			return Reason{Task: id, State: "queued", Reason: reason, Next: next}, err
		}
	}
	r, err := whyNotReady(ctx, p, tracker, t)
	r.Task = id
	return r, err
}

// whyNotReady returns why a task is not ready.
func whyNotReady(ctx context.Context, p *project.Project, tracker task.Tracker, t task.Task) (Reason, error) {
	show, run := "coven task show "+shellword.Word(t.ID), "coven run "+shellword.Word(t.ID)
	switch {
	case t.Status == task.StatusClosed:
		return Reason{State: "closed", Reason: cmp.Or(oneline.Of(t.CloseReason), "no reason given"), Next: show}, nil
	case !t.Work():
		return Reason{State: "no work", Reason: "its type is " + t.Type + ": coven runs the tasks that belong to it", Next: "coven task ready"}, nil
	}
	blockers, err := tracker.Blockers(ctx, t.ID)
	switch {
	case err != nil:
		return Reason{}, err
	case len(blockers) > 0:
		return Reason{State: "waiting (dependency)", Reason: "depends on " + strings.Join(blockers, ", "), Next: "coven why " + shellword.Word(blockers[0])}, nil
	case p.Abandoned(t.Assignee):
		return Reason{State: "queued", Reason: "claimed by an interrupted run", Next: run}, nil
	case t.Assignee != "":
		return Reason{State: "assigned", Reason: "assigned to " + t.Assignee, Next: show}, nil
	case t.DeferUntil.After(p.Env.Now()):
		return Reason{State: "deferred", Reason: "not before " + t.DeferUntil.Local().Format("2006-01-02 15:04"), Next: run}, nil
	case t.Status == task.StatusBlocked:
		return Reason{State: "blocked", Reason: "blocked in the tracker" + lastNote(t.Notes), Next: run}, nil
	}
	return Reason{State: t.Status, Reason: "status in the tracker: " + t.Status, Next: show}, nil
}

// lastNote returns the last line of a task's notes.
func lastNote(notes string) string {
	lines := strings.Split(strings.TrimSpace(notes), "\n")
	if last := oneline.Of(lines[len(lines)-1]); last != "" {
		return ": " + last
	}
	return ""
}
