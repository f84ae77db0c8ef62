package worktree

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// clearNote is the note of what Clear rescues.
const clearNote = "leftovers, removed"

// Clear removes exactly the leftover s, if it still exists (ErrNotStale). First it
// stores content that exists nowhere else under refs/coven/rescue and returns that ref,
// or "". If storing fails, nothing is removed; for ignored files above 10 MB the error
// is an *IgnoredError.
func (r *Repo) Clear(ctx context.Context, s Stale) (rescueRef string, err error) {
	l, err := r.lock(ctx, taskLock(s.name()), "clear "+s.Kind+" of "+s.Task)
	if err != nil {
		return "", err
	}
	defer l.Release()
	if s.Kind == StaleUnexamined {
		return r.clearUnexamined(ctx, s)
	}
	trees, err := r.lock(ctx, worktreesLock, "clear "+s.Kind+" of "+s.Task)
	if err != nil {
		return "", err
	}
	defer trees.Release()
	rescueRef, err = r.clear(ctx, s, l)
	if err != nil {
		return rescueRef, fmt.Errorf("remove %s%s: %w", s.Path, s.Ref, err)
	}
	return rescueRef, nil
}

// name returns the name of the task.
func (s Stale) name() string { return SafeName(s.Task) }

func (r *Repo) clear(ctx context.Context, s Stale, l *lock.Lock) (string, error) {
	now, err := r.stale(ctx) // again: the caller has the task's lock now
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(now, func(other Stale) bool {
		return other.Kind == s.Kind && other.Task == s.Task && other.Path == s.Path && other.Ref == s.Ref
	}) {
		return "", ErrNotStale
	}
	w := r.worktree(s.Task, record{})
	switch s.Kind {
	case StaleRegistration:
		w.admin, w.name = s.Path, scratchName // not a task: no record is written
		return r.storeAnd(ctx, w, func() error { return w.keepAdmin(ctx, clearNote) }, func() error { return file.RemoveAll(s.Path) })
	case StaleDirectory:
		w.Path, w.name = s.Path, scratchName
		return r.storeAnd(ctx, w, func() error { return w.keepDirectory(ctx) }, func() error { return r.trashNow(w) })
	case StaleBranch:
		return r.clearBranch(ctx, w, s.Ref)
	case StaleIntegration:
		if w, err = r.Leftover(ctx, s.Task); err != nil {
			return "", err
		}
		return "", w.clearIntegration(ctx, l)
	case StaleLanding:
		return r.clearLanding(ctx, w, s.Path)
	default: // its content exists elsewhere
		return "", file.RemoveAll(s.Path)
	}
}

// storeAnd stores, then removes, and returns the ref that storing made.
func (r *Repo) storeAnd(ctx context.Context, w *Worktree, store, remove func() error) (string, error) {
	before, err := r.Rescues(ctx, w.TaskID)
	if err != nil {
		return "", err
	}
	if err := store(); err != nil {
		return "", err
	}
	after, err := r.Rescues(ctx, w.TaskID)
	if err != nil {
		return "", err
	}
	ref := ""
	if len(after) > len(before) {
		ref = after[len(after)-1].Ref
	}
	failpoint.Point("clear.stored")
	return ref, remove()
}

// keepDirectory stores all files of an unknown directory.
func (w *Worktree) keepDirectory(ctx context.Context) error {
	if vacant, err := w.vacant(); err != nil || vacant {
		return err
	}
	_, err := w.rescue(ctx, clearNote, capIgnored)
	return err
}

// trashNow renames a directory and deletes it.
func (r *Repo) trashNow(w *Worktree) error {
	if err := r.trash(w.Path, w.name); err != nil {
		return err
	}
	failpoint.Point("clear.trashed")
	return r.emptyTrash()
}

// clearBranch keeps the commits of the branch, unless another ref does.
func (r *Repo) clearBranch(ctx context.Context, w *Worktree, ref string) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	kept, err := r.reachableElsewhere(ctx, tip, ref)
	if err != nil {
		return "", err
	}
	store := func() error {
		if kept {
			return nil
		}
		_, err := w.rescueBranch(ctx, clearNote)
		return err
	}
	return r.storeAnd(ctx, w, store, func() error { return r.deleteRef(ctx, ref, tip) })
}

// clearIntegration finishes or discards the integration.
func (w *Worktree) clearIntegration(ctx context.Context, l *lock.Lock) error {
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return err
	}
	if tip != "" && w.here() == nil {
		return w.settle(ctx, l)
	}
	return os.Remove(w.movePath())
}

// clearLanding finishes or undoes the changes of a landing to a checkout.
func (r *Repo) clearLanding(ctx context.Context, w *Worktree, path string) (string, error) {
	all, err := r.checkouts()
	if err != nil {
		return "", err
	}
	for _, c := range all {
		m := c.mover()
		_, left, err := m.Left()
		if err != nil || left == nil || m.State+".json" != path {
			continue
		}
		c.ref = cmp.Or(left.Ref, headsPrefix+"HEAD")
		l, err := r.lock(ctx, targetLock(Target{Branch: strings.TrimPrefix(c.ref, headsPrefix)}), "clear a landing of "+w.TaskID)
		if err != nil {
			return "", err
		}
		defer l.Release()
		c.git.Hold, c.task = l.File(), left.Task
		return r.storeAnd(ctx, w, func() error { return c.clearLeft(ctx) }, func() error { return nil })
	}
	return "", ErrNotStale
}
