package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/holder"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// claims finds tasks that are claimed by a session that will not work on them,
// here or in the tracker.
func (v *Examination) claims(ctx context.Context) []Finding {
	all, err := v.project.Repo.Claims(ctx)
	if err != nil {
		return fail("git for-each-ref refs/coven/claims", "%v", err)
	}
	var found []Finding
	named := map[string]bool{}
	for _, held := range all {
		why, at := v.project.Dead(ctx, held)
		switch {
		case at != "":
			found = append(found, warn("coven status", "task %s is claimed by session %s, which is gone; %s", held.Task, held.Session, at)...)
			named[held.Task] = true
		case why != "":
			f := fail("coven doctor --fix", "task %s is claimed, and %s", held.Task, why)[0]
			f.fix = func(ctx context.Context) (string, error) {
				return v.keeper.hold(ctx, held.Task, func() (string, error) { return v.giveBack(ctx, held.Task, holder.OwnerOf(held)) })
			}
			found = append(found, f)
			named[held.Task] = true
		}
	}
	found = append(found, v.assigned(ctx, named)...)
	if len(found) == 0 {
		return ok("%d, all of sessions that can continue", len(all))
	}
	return found
}

// assigned finds tasks of the tracker that belong to a session of this
// repository which will not work on them; those in named are known already.
func (v *Examination) assigned(ctx context.Context, named map[string]bool) []Finding {
	tasks, err := v.allTasks(ctx)
	if err != nil {
		return nil // the tracker's checkup says so
	}
	var found []Finding
	for _, t := range tasks {
		if t.Status == task.StatusClosed || named[t.ID] || !v.project.Abandoned(t.Assignee) {
			continue
		}
		f := fail("coven doctor --fix", "task %s belongs to %s, a session that is over", t.ID, t.Assignee)[0]
		f.fix = func(ctx context.Context) (string, error) {
			return v.keeper.hold(ctx, t.ID, func() (string, error) { return v.giveBack(ctx, t.ID, t.Assignee) })
		}
		found = append(found, f)
	}
	return found
}

// giveBack takes a task in the tracker from a session that is over, if it still
// has it: one that has landed is closed, any other is free again.
func (v *Examination) giveBack(ctx context.Context, id, owner string) (string, error) {
	const removed = "the claim is removed"
	_, name, _ := strings.Cut(strings.TrimPrefix(owner, holder.ActorPrefix), "/")
	last, err := session.Load(filepath.Join(v.project.Repo.Root, session.Dir, name))
	known := err == nil && name != "" && !last.Started.IsZero()
	if known && last.Info.Tracker == project.NoTracker {
		return removed, nil
	}
	tasks, err := v.allTasks(ctx)
	if err != nil {
		return "", fmt.Errorf("give the task back: %w", err)
	}
	if !slices.ContainsFunc(tasks, func(t task.Task) bool {
		return t.ID == id && t.Assignee == owner && t.Status != task.StatusClosed
	}) {
		return removed, nil
	}
	if known && last.Status == session.Completed && last.Commit != "" {
		_, err := v.project.Tracker.Close(ctx, id, owner, "Landed as "+last.Commit+".")
		return "the task is closed: it has landed as " + last.Commit, err
	}
	_, err = v.project.Tracker.Release(ctx, id, owner, "")
	return removed + ", the task is open again", control.IgnoreClaimed(err)
}

// keeper holds tasks while they are fixed, like a session that works on them:
// no coven begins on them meanwhile. Killed, it leaves a session that never
// began, whose claims are nobody's.
type keeper struct {
	project *project.Project
	session *session.Session // nil until something is held
}

// holdTime is how long a claim of the keeper's holds: longer than any repair.
const holdTime = time.Hour

func (k *keeper) begin() error {
	if k.session != nil {
		return nil
	}
	root := k.project.Repo.Root
	if err := worktree.EnsureCovenDir(root); err != nil {
		return err
	}
	s, err := session.Create(root, "", "doctor", k.project.Env.Now)
	k.session = s
	return err
}

func (k *keeper) close() {
	if k.session != nil {
		_ = k.session.Discard() // the next doctor finds it
	}
}

// hold claims a task for as long as do works on it, in place of a dead claim if
// there is one. Nothing is done for a task whose session can go on.
func (k *keeper) hold(ctx context.Context, id string, do func() (string, error)) (done string, err error) {
	if err := k.begin(); err != nil {
		return "", err
	}
	repo := k.project.Repo
	held, err := repo.ClaimOf(ctx, id)
	switch {
	case errors.Is(err, worktree.ErrNoClaim):
	case err != nil:
		return "", err
	default:
		if why, _ := k.project.Dead(ctx, held); why == "" {
			return "", &worktree.ClaimedError{Present: held}
		}
	}
	mine, err := repo.Claim(ctx, worktree.Claim{
		Task: id, Holder: holder.Name(), Session: k.session.ID, Expires: k.project.Env.Now().Add(holdTime),
	}, held.Oid)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, repo.Unclaim(context.WithoutCancel(ctx), id, mine.Oid)) }()
	// Nobody can begin now. What has begun meanwhile is not ours.
	views, err := session.List(k.project.Repo.Root)
	damaged, err := session.DamagedIn(err)
	if err != nil {
		return "", err
	}
	for _, d := range damaged {
		if worktree.SafeName(d.Task) == worktree.SafeName(id) {
			return "", d
		}
	}
	for _, v := range views {
		if worktree.SafeName(v.Task) == worktree.SafeName(id) && v.Live() {
			return "", exit.Personf(control.NextOf(v), "task %s is %s: its session can continue", v.Task, control.StateOf(v))
		}
	}
	return do()
}
