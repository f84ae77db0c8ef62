package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// worktrees finds worktrees, branches and records of tasks that are over.
func (v *Examination) worktrees(ctx context.Context) []Finding {
	owned, broken := v.owned(ctx)
	orphans, err := v.orphans(ctx, owned)
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	stale, err := worktree.FindStale(ctx, v.project.Repo, func(id string) bool { return owned[worktree.SafeName(id)] })
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	found := append(orphans, v.lostBranches(ctx)...)
	for _, s := range stale {
		f := fail("coven doctor --fix", "%s", s.Text)[0]
		f.fix = func(ctx context.Context) (string, error) { return v.clear(ctx, s) }
		found = append(found, f)
	}
	if broken != nil { // an unreadable session may own them
		for i := range found {
			found[i].fix, found[i].Next = nil, "ls -l "+session.Dir
		}
	}
	failed := v.failed(ctx)
	if len(found)+len(failed) == 0 {
		return ok("no leftovers of tasks that are over")
	}
	return append(found, failed...)
}

// owned returns the names of tasks with a session that can be resumed or retried, or with a
// claim that is not dead. The error names sessions and claims that cannot be read.
func (v *Examination) owned(ctx context.Context) (map[string]bool, error) {
	owned := map[string]bool{}
	views, err := v.sessionViews()
	for _, s := range views {
		name := worktree.SafeName(s.Task)
		owned[name] = owned[name] || s.Live() || s.Status == session.Failed && v.project.Retryable(ctx, s.Task)
	}
	lost := v.lostCopies(ctx)
	claims, claimsErr := claim.List(ctx, v.project.Repo)
	for _, held := range claims {
		if why, _ := v.project.Dead(ctx, held); why == "" || lost[held.Session] {
			owned[worktree.SafeName(held.Task)] = true
		}
	}
	return owned, errors.Join(err, claimsErr)
}

// orphans finds complete or partial worktrees of coven without an owner.
func (v *Examination) orphans(ctx context.Context, owned map[string]bool) ([]Finding, error) {
	trees, err := worktree.List(ctx, v.project.Repo)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, t := range trees {
		if owned[t.Name] || t.Foreign || t.TaskID == "" || !t.Present && t.Tip == "" {
			continue // it has an owner, or FindStale reports it
		}
		text := "task %s has a worktree, but no session works on it: %s"
		if !t.Present {
			text = "task %s has a branch, but no session works on it; its worktree %s is gone"
		}
		f := fail("coven doctor --fix", text, t.TaskID, t.Path)[0]
		f.fix = func(ctx context.Context) (string, error) { return v.remove(ctx, t.TaskID) }
		found = append(found, f)
	}
	return found, nil
}

// lostBranches finds worktrees whose branch a person has renamed or deleted.
func (v *Examination) lostBranches(ctx context.Context) []Finding {
	trees, err := worktree.List(ctx, v.project.Repo)
	if err != nil {
		return nil
	}
	var found []Finding
	for _, t := range trees {
		tree, err := v.project.Repo.Find(ctx, t.TaskID)
		if err != nil || t.TaskID == "" || t.Tip != "" {
			continue
		}
		if lost, err := worktree.HasLostBranch(ctx, tree); err != nil || !lost {
			continue
		}
		f := fail("coven doctor --fix", "task %s has a worktree, but its branch %s is gone", t.TaskID, tree.Branch)[0]
		f.fix = func(ctx context.Context) (string, error) {
			b, _, err := worktree.RestoreBranch(ctx, tree)
			return b.String(), err
		}
		found = append(found, f)
	}
	return found
}

// failed finds worktrees that a failed session left for a retry.
func (v *Examination) failed(ctx context.Context) []Finding {
	trees, err := worktree.List(ctx, v.project.Repo)
	if err != nil {
		return nil
	}
	var found []Finding
	for _, t := range trees {
		if t.TaskID != "" && v.project.Retryable(ctx, t.TaskID) {
			found = append(found, warn("coven retry "+shellword.Word(t.TaskID), "task %s has failed; its worktree is kept for a retry", t.TaskID)...)
		}
	}
	return found
}

// remove stores the unlanded contents of a worktree and removes it.
func (v *Examination) remove(ctx context.Context, id string) (string, error) {
	return v.claimer.withClaim(ctx, id, func() (string, error) {
		tree, err := worktree.Leftover(ctx, v.project.Repo, id)
		if err != nil {
			return "", err
		}
		last, err := v.project.Finder.OfTask(id)
		if err != nil && !errors.Is(err, session.ErrNone) {
			return "", err
		}
		warned := ""
		if err == nil {
			if err := control.TearDownOver(ctx, v.project, last, func(text string) { warned += "; warning: " + text }); err != nil {
				return "", err
			}
		}
		ref, err := worktree.Remove(ctx, tree, worktree.RemoveRequest{
			Note: cmp.Or(last.ID, "no session") + ", removed by coven doctor", Landed: last.Landed.Tip,
		})
		if err == nil {
			control.ForgetCaches(v.project, tree.Name)
		}
		return removedAs(ref) + warned, project.DropIgnoredFirst(id, err)
	})
}

// clear removes one leftover. It claims the task of the leftover, if it has one.
func (v *Examination) clear(ctx context.Context, s worktree.Stale) (string, error) {
	clear := func() (string, error) {
		ref, err := worktree.Clear(ctx, v.project.Repo, s)
		if errors.Is(err, worktree.ErrNotStale) {
			return "already gone", nil
		}
		return removedAs(ref), project.DropIgnoredFirst(s.Task, err)
	}
	if s.Task == "" {
		return clear()
	}
	return v.claimer.withClaim(ctx, s.Task, clear)
}

func removedAs(ref string) string {
	if ref == "" {
		return "removed"
	}
	return "removed; its content is stored as " + ref
}

// leftovers finds files of killed covens. They are harmless.
func (v *Examination) leftovers(context.Context) []Finding {
	var found []Finding
	parent := v.env.SocketDir()
	if dirs := tempdir.Abandoned(parent); len(dirs) > 0 {
		f := warn("coven doctor --fix", "socket directories in %s of killed covens: %d", parent, len(dirs))[0]
		f.fix = func(context.Context) (string, error) {
			tempdir.Sweep(parent)
			if left := tempdir.Abandoned(parent); len(left) > 0 {
				return "", fmt.Errorf("%s cannot be removed", left[0])
			}
			return "removed", nil
		}
		found = append(found, f)
	}
	root := v.project.Repo.Root
	leftovers, err := session.FindLeftovers(root, v.env.Now())
	if err != nil {
		return append(found, fail("ls -lR "+filepath.Dir(session.Dir), "%v", err)...)
	}
	for _, l := range leftovers {
		f := warn("coven doctor --fix", "%s: %s", l.Text, l.Path)[0]
		f.fix = func(context.Context) (string, error) { return "removed", l.Remove() }
		found = append(found, f)
	}
	if len(found) == 0 {
		return ok("none")
	}
	return found
}
