package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
)

// clearNote is the note of the rescues that Clear stores.
const clearNote = "leftovers, removed"

// Clear removes exactly the leftover s. If s no longer exists, the error is ErrNotStale. Clear first stores
// content that exists nowhere else under refs/coven/rescue and returns that ref, or "" if there was no such
// content. If storing fails, nothing is removed. If there are more than 10 MB of ignored files, the error
// is an *IgnoredError.
func Clear(ctx context.Context, r *repo.Repo, s Stale) (rescueRef string, err error) {
	l, err := r.Lock(ctx, names.TaskLock(s.name()), "clear "+s.Kind+" of "+s.Task)
	if err != nil {
		return "", err
	}
	defer l.Release()
	trees, err := r.Lock(ctx, names.WorktreesLock, "clear "+s.Kind+" of "+s.Task)
	if err != nil {
		return "", err
	}
	defer trees.Release()
	rescueRef, err = clearStale(ctx, r, s, l)
	if err != nil {
		return rescueRef, fmt.Errorf("remove %s%s: %w", s.Path, s.Ref, err)
	}
	return rescueRef, nil
}

func (s Stale) name() string { return names.SafeName(s.Task) }

func clearStale(ctx context.Context, r *repo.Repo, s Stale, l *lock.Lock) (string, error) {
	now, err := stale(ctx, r) // list again, now that the caller holds the task's lock
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(now, func(other Stale) bool {
		return other.Kind == s.Kind && other.Task == s.Task && other.Path == s.Path && other.Ref == s.Ref
	}) {
		return "", ErrNotStale
	}
	w := r.Worktree(s.Task, repo.Record{})
	switch s.Kind {
	case StaleRegistration:
		w.Admin, w.Name = s.Path, content.ScratchName // not a task name, so that no record is written
		return storeAnd(ctx, r, w, func() error { return rescue.KeepAdmin(ctx, w, clearNote) }, func() error { return file.RemoveAll(s.Path) })
	case StaleDirectory:
		w.Path, w.Name = s.Path, content.ScratchName
		return storeAnd(ctx, r, w, func() error { return keepDirectory(ctx, w) }, func() error {
			return errors.Join(trashNow(r, w), forgetUnexamined(ctx, r, s.Path))
		})
	case StaleBranch:
		return clearBranch(ctx, r, w, s.Ref)
	case StaleIntegration:
		if w, err = Leftover(ctx, r, s.Task); err != nil {
			return "", err
		}
		return "", clearIntegration(ctx, w, l)
	case StaleLanding:
		return clearLanding(ctx, r, w, s.Path)
	default: // its content exists elsewhere
		return "", file.RemoveAll(s.Path)
	}
}

// storeAnd calls store, then remove. It returns the rescue ref that store created, or "".
func storeAnd(ctx context.Context, r *repo.Repo, w *repo.Worktree, store, remove func() error) (string, error) {
	before, err := rescue.List(ctx, r, w.TaskID)
	if err != nil {
		return "", err
	}
	if err := store(); err != nil {
		return "", err
	}
	after, err := rescue.List(ctx, r, w.TaskID)
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

// keepDirectory rescues all files of an unknown directory.
func keepDirectory(ctx context.Context, w *repo.Worktree) error {
	if vacant, err := w.IsVacant(); err != nil || vacant {
		return err
	}
	_, err := rescue.Store(ctx, w, clearNote, rescue.CapIgnored)
	return err
}

// trashNow moves a directory to the trash and empties the trash.
func trashNow(r *repo.Repo, w *repo.Worktree) error {
	if err := pool.Trash(r, w.Path, w.Name); err != nil {
		return err
	}
	failpoint.Point("clear.trashed")
	return pool.EmptyTrash(r)
}

// forgetUnexamined removes the record and the ref of a directory in unexaminedDir.
func forgetUnexamined(ctx context.Context, r *repo.Repo, path string) error {
	id := filepath.Base(path)
	if filepath.Base(filepath.Dir(path)) != unexaminedDir || file.Exists(path) {
		return nil
	}
	if oid, err := r.Git().Ref(ctx, unexaminedPrefix+id); err == nil {
		if err := deleteRef(ctx, r, unexaminedPrefix+id, oid); err != nil {
			return err
		}
	}
	return file.RemoveAll(r.StatePath("unexamined", id))
}

// clearBranch rescues the commits of the branch, unless another ref reaches them, and deletes the branch.
func clearBranch(ctx context.Context, r *repo.Repo, w *repo.Worktree, ref string) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	kept, err := reachableElsewhere(ctx, r, tip, ref)
	if err != nil {
		return "", err
	}
	store := func() error {
		if kept {
			return nil
		}
		_, err := rescue.StoreBranch(ctx, w, clearNote)
		return err
	}
	return storeAnd(ctx, r, w, store, func() error { return deleteRef(ctx, r, ref, tip) })
}

// clearIntegration finishes or discards the integration.
func clearIntegration(ctx context.Context, w *repo.Worktree, l *lock.Lock) error {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return err
	}
	if tip != "" && w.CheckExists() == nil {
		return integrate.FinishInterrupted(ctx, w, l)
	}
	return os.Remove(integrate.MovePath(w))
}

// clearLanding finishes or undoes an interrupted landing's changes to a checkout.
func clearLanding(ctx context.Context, r *repo.Repo, w *repo.Worktree, path string) (string, error) {
	all, err := land.Checkouts(r)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		m := c.Mover()
		if c.Path == path {
			return "", clearBehind(ctx, r, c)
		}
		_, left, err := m.Left()
		if err != nil || left == nil || m.State+".json" != path {
			continue
		}
		c.Ref = cmp.Or(left.Ref, names.HeadsPrefix+"HEAD")
		l, err := r.Lock(ctx, names.TargetLock(strings.TrimPrefix(c.Ref, names.HeadsPrefix)), "clear a landing of "+w.TaskID)
		if err != nil {
			return "", err
		}
		defer l.Release()
		c.Git.Hold, c.Task = l.File(), left.Task
		return storeAnd(ctx, r, w, func() error { return c.ClearLeft(ctx) }, func() error { return nil })
	}
	return "", ErrNotStale
}

// clearBehind unlocks the index of a checkout that a killed landing had locked, and moves the checkout if it is
// behind.
func clearBehind(ctx context.Context, r *repo.Repo, c land.Checkout) error {
	name, err := r.HeadOf(ctx, c.Git.Dir)
	if errors.Is(err, repo.ErrDetached) {
		return c.ClearLeft(ctx)
	}
	if err != nil {
		return err
	}
	l, err := r.Lock(ctx, names.TargetLock(strings.TrimPrefix(name, names.HeadsPrefix)), "update "+c.Path)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := c.ClearLeft(ctx); err != nil {
		return err
	}
	return land.CatchUp(ctx, r, name, l.File())
}
