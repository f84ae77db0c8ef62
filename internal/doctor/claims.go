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
	"github.com/coven-run/coven/internal/control/tracker"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// claims finds tasks that are claimed, here or in the tracker, by a session that will not work on them.
func (v *Examination) claims(ctx context.Context) []Finding {
	all, err := claim.List(ctx, v.project.Repo)
	if err != nil {
		return fail("git for-each-ref refs/coven/claims", "%v", err)
	}
	var found []Finding
	lost := v.lostCopies(ctx)
	named := map[string]bool{}
	for _, held := range all {
		why, at := v.project.Dead(ctx, held)
		switch {
		case lost[held.Session]: // the checkup of sessions reports it
			named[held.Task] = true
		case at != "":
			found = append(found, warn("coven status", "task %s is claimed by session %s, which is gone; %s", held.Task, held.Session, at)...)
			named[held.Task] = true
		case why != "":
			f := fail("coven doctor --fix", "task %s is claimed, and %s", held.Task, why)[0]
			f.fix = func(ctx context.Context) (string, error) {
				return v.claimer.withClaim(ctx, held.Task, func() (string, error) { return v.giveBack(ctx, held.Task, holder.OwnerOf(held)) })
			}
			found = append(found, f)
			named[held.Task] = true
		}
	}
	found = append(found, v.assigned(ctx, named)...)
	switch {
	case len(found) > 0:
		return found
	case len(all) == 0:
		return ok("none")
	}
	return ok("%d, each belongs to a session that can continue", len(all))
}

// assigned finds tasks in the tracker that are assigned to a session of this repository that
// will not work on them. It skips those in named.
func (v *Examination) assigned(ctx context.Context, named map[string]bool) []Finding {
	tasks, err := v.allTasks(ctx)
	if err != nil {
		return nil // the checkup of the tracker reports it
	}
	var found []Finding
	for _, t := range tasks {
		if t.Status == task.StatusClosed || named[t.ID] || !v.project.Abandoned(t.Assignee) {
			continue
		}
		f := fail("coven doctor --fix", "task %s is assigned to %s, whose session is over", t.ID, t.Assignee)[0]
		f.fix = func(ctx context.Context) (string, error) {
			return v.claimer.withClaim(ctx, t.ID, func() (string, error) { return v.giveBack(ctx, t.ID, t.Assignee) })
		}
		found = append(found, f)
	}
	return found
}

// giveBack closes the task of a session that is over if its change has landed, and reopens it otherwise. It
// changes only a task that is still assigned to that session.
func (v *Examination) giveBack(ctx context.Context, id, owner string) (string, error) {
	const removed = "removed the claim"
	_, name, _ := strings.Cut(strings.TrimPrefix(owner, holder.ActorPrefix), "/")
	last, err := session.Load(filepath.Join(v.project.Repo.Root, session.Dir, name))
	known := err == nil && name != "" && !last.Started.IsZero()
	if known && last.Info.Tracker == project.NoTracker {
		return removed, nil
	}
	tasks, err := v.allTasks(ctx)
	if err != nil {
		return "", fmt.Errorf("release the task: %w", err)
	}
	if !slices.ContainsFunc(tasks, func(t task.Task) bool {
		return t.ID == id && t.Assignee == owner && t.Status != task.StatusClosed
	}) {
		return removed, nil
	}
	if known && last.Status == session.Completed && last.Commit != "" {
		_, err := v.project.Tracker.Close(ctx, id, owner, "Landed as "+last.Commit+".")
		return "closed the task: it has landed as " + last.Commit, err
	}
	_, err = v.project.Tracker.Release(ctx, id, owner, "")
	return removed + " and reopened the task", tracker.IgnoreClaimed(err)
}

// claimer claims tasks while doctor fixes them, like a session that works on them, so that no coven starts
// them. If it is killed, it leaves behind a session that never started, whose claims others may replace.
type claimer struct {
	project *project.Project
	session *session.Session // nil until a task is claimed
}

// holdTime is the lifetime of a claim of the keeper: longer than any fix.
const holdTime = time.Hour

func (k *claimer) begin() error {
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

func (k *claimer) close() {
	if k.session != nil {
		_ = k.session.Discard() // the next doctor finds it
	}
}

// withClaim claims a task while do works on it. It replaces a dead claim, and returns an error for a task whose
// session can be resumed.
func (k *claimer) withClaim(ctx context.Context, id string, do func() (string, error)) (done string, err error) {
	if err := k.begin(); err != nil {
		return "", err
	}
	repo := k.project.Repo
	held, err := claim.Of(ctx, repo, id)
	switch {
	case errors.Is(err, claim.ErrNoClaim):
	case err != nil:
		return "", err
	default:
		if why, _ := k.project.Dead(ctx, held); why == "" {
			return "", &claim.ClaimedError{Present: held}
		}
	}
	mine, err := claim.Acquire(ctx, repo, claim.Claim{
		Task: id, Holder: holder.Name(), Session: k.session.ID, Expires: k.project.Env.Now().Add(holdTime),
	}, held.Oid)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, claim.Release(context.WithoutCancel(ctx), repo, id, mine.Oid)) }()
	// No session can start from now on, but one may have started before the claim.
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
