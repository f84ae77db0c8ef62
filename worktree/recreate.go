package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/covendir"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
	"github.com/coven-run/coven/worktree/internal/submodule"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/supply"
)

// Recreate restores a task's deleted worktree on its branch. The files get exactly the content of the
// session's latest snapshot, which Recreate returns. If the branch has moved since that snapshot, or if
// there is no snapshot, the files get the content of the branch's tip, and the returned snapshot is zero.
//
// A deleted branch is created again at the commit of the snapshot. Content that was neither committed nor
// in a snapshot is lost: ignored files, and the .git of repositories inside the worktree. Recreate fails
// with ErrNoWorktree if there is neither branch nor snapshot, and with a *LeftoverError if the worktree
// exists. After a kill, it can be called again; until it has succeeded, Find does not find the worktree.
func Recreate(ctx context.Context, r *repo.Repo, taskID, session string) (*repo.Worktree, snapshot.Snapshot, error) {
	l, err := r.Lock(ctx, names.TaskLock(names.SafeName(taskID)), "recreate "+taskID)
	if err != nil {
		return nil, snapshot.Snapshot{}, err
	}
	defer l.Release()
	re, err := lost(ctx, r, taskID, session)
	if err == nil {
		err = re.run(ctx)
	}
	if err != nil {
		return nil, snapshot.Snapshot{}, fmt.Errorf("recreate the worktree of %s: %w", taskID, err)
	}
	return re.w, re.from, nil
}

// A recreation is the state of one call of Recreate, which holds the task's lock.
type recreation struct {
	w    *repo.Worktree
	rec  repo.Record
	tip  string            // tip of the branch, empty if it does not exist
	from snapshot.Snapshot // zero to restore the content of start
	// start is the branch's tip, or the commit at which to create the branch again.
	start string
}

// lost finds the remains of a deleted worktree.
func lost(ctx context.Context, r *repo.Repo, taskID, session string) (*recreation, error) {
	rec, err := r.ReadRecord(names.SafeName(taskID))
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if known && (rec.Task != taskID || !rec.Ready && !rec.Again) {
		return nil, fmt.Errorf("task %s: %w", taskID, repo.ErrNoWorktree)
	}
	rec.Task = taskID
	re := &recreation{w: r.Worktree(taskID, rec), rec: rec}
	vacant, err := re.w.IsVacant()
	if err != nil {
		return nil, err
	}
	if re.tip, err = re.w.TipIfAny(ctx); err != nil {
		return nil, err
	}
	if !vacant && !rec.Again {
		return nil, &LeftoverError{TaskID: taskID, Owner: rec.Task, Path: re.w.Path, Unlanded: true}
	}
	return re, re.choose(ctx, session)
}

// choose selects the content to restore.
func (re *recreation) choose(ctx context.Context, session string) error {
	last, err := snapshot.Last(ctx, re.w.Repo, session)
	if err != nil {
		return err
	}
	if re.tip == "" {
		if last.N == 0 {
			return fmt.Errorf("no branch %s and no snapshot: %w", re.w.Branch, repo.ErrNoWorktree)
		}
		re.from = last
		re.start, err = re.startingPoint(ctx, last)
		return err
	}
	re.start = re.tip
	if last.N > 0 && last.Tip == re.tip {
		re.from = last
	}
	return nil
}

// startingPoint returns the commit at which to create a deleted branch, as close as possible to its old
// tip.
func (re *recreation) startingPoint(ctx context.Context, last snapshot.Snapshot) (string, error) {
	for _, oid := range []string{last.Tip, re.rec.Base} {
		if oid == "" {
			continue
		}
		if c, err := re.w.Repo.Git().Commit(ctx, oid); err == nil {
			return c.Oid, nil
		}
	}
	return re.w.Repo.Head(ctx)
}

func (re *recreation) run(ctx context.Context) error {
	if err := covendir.Ensure(re.w.Repo.Root); err != nil {
		return err
	}
	if err := re.w.Repo.EnsurePlace(); err != nil {
		return err
	}
	if err := re.register(ctx); err != nil {
		return err
	}
	failpoint.Point("recreate.registered")
	if err := sparse.WriteCone(ctx, re.w); err != nil {
		return err
	}
	if err := re.fill(ctx); err != nil {
		return err
	}
	failpoint.Point("recreate.filled")
	if err := supply.Into(ctx, re.w, re.start); err != nil {
		return err
	}
	re.rec.Ready, re.rec.Again = true, false
	return re.w.Repo.WriteRecord(re.w.Name, re.rec)
}

// register replaces the old registration with a new one.
func (re *recreation) register(ctx context.Context) error {
	w := re.w
	l, err := w.Repo.Lock(ctx, names.WorktreesLock, "recreate "+w.TaskID)
	if err != nil {
		return err
	}
	defer l.Release()
	unfinished := re.rec.Again
	re.rec.Ready, re.rec.Again = false, true
	if !unfinished {
		re.rec.Made++
	}
	w.Number = re.rec.Made + 1
	if re.rec.Base == "" {
		re.rec.Base = re.start
	}
	if err := w.Repo.WriteRecord(w.Name, re.rec); err != nil {
		return err
	}
	failpoint.Point("recreate.recorded")
	if unfinished {
		if err := re.discard(ctx); err != nil {
			return err
		}
	}
	if err := unlink(ctx, w); err != nil {
		return err
	}
	failpoint.Point("recreate.cleared")
	reg := registration{w: w, admin: func(admin string) error {
		re.rec.Admin, w.Admin = admin, filepath.Join(w.Repo.GitDir, "worktrees", admin)
		return w.Repo.WriteRecord(w.Name, re.rec)
	}}
	if re.tip == "" {
		reg.start = re.start
	}
	return register(ctx, w.Repo, reg)
}

// discard removes the remains of a killed Recreate. It rescues files that differ from the snapshot,
// although none are expected.
func (re *recreation) discard(ctx context.Context) error {
	w := re.w
	vacant, err := w.IsVacant()
	if err != nil || vacant {
		return err
	}
	goal := re.start
	if re.from.N > 0 {
		goal = re.from.Tree
	}
	before := *w
	before.Partial = true
	ix, tree, err := content.OpenStaged(ctx, &before, nil)
	if err != nil {
		return err
	}
	defer ix.Drop()
	changes, err := w.Repo.Git().Changes(ctx, goal, tree)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.Status != 'D' {
			if _, err := rescue.StoreStaged(ctx, w, "found while the worktree was made again", tree); err != nil {
				return err
			}
			break
		}
	}
	return pool.Trash(w.Repo, w.Path, w.Name)
}

// unlink removes the registrations of a worktree that does not exist. It rescues content that only they
// contain.
func unlink(ctx context.Context, w *repo.Worktree) error {
	admins, err := registrations(w)
	if err != nil {
		return err
	}
	for _, admin := range admins {
		old := *w
		old.Admin = filepath.Join(w.Repo.GitDir, "worktrees", admin)
		if err := rescue.KeepAdmin(ctx, &old, "in the git directory of the deleted worktree"); err != nil {
			return err
		}
		if err := file.RemoveAll(old.Admin); err != nil {
			return err
		}
	}
	return nil
}

// registrations returns the names in GitDir/worktrees that refer to the worktree: the recorded name, and
// those that point to its path and belong to no other task.
func registrations(w *repo.Worktree) ([]string, error) {
	admins, err := w.Repo.Admins()
	if err != nil {
		return nil, err
	}
	taken, err := w.Repo.TaskAdmins()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, admin := range admins {
		recorded := w.Admin != "" && admin == filepath.Base(w.Admin)
		says := w.Repo.AdminPath(admin) == w.Path && !taken[admin]
		if says || recorded && !belongsToOther(w.Repo, admin, w.Path) {
			found = append(found, admin)
		}
	}
	return found, nil
}

// belongsToOther reports whether a registration belongs to a checkout at another path. After `git worktree
// prune`, a user's checkout may reuse the name.
func belongsToOther(r *repo.Repo, admin, path string) bool {
	says := r.AdminPath(admin)
	if says == "" || says == path {
		return false
	}
	return filepath.Clean(r.GitDirOf(says)) == filepath.Join(r.GitDir, "worktrees", admin)
}

// fill writes the files. It first discards the kept indexes and the submodule records, which describe the
// deleted files.
func (re *recreation) fill(ctx context.Context) error {
	w := re.w
	for _, kept := range []string{w.StatePath(content.CommitIndex), w.StatePath(content.SnapshotIndex), w.StatePath("include.json"), submodule.LeftPath(w), sparse.OutsidePath(w)} {
		if err := os.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if re.from.N == 0 {
		return fill(ctx, w, pool.Entry{}, re.start)
	}
	g, err := content.RawGit(w)
	if err != nil {
		return err
	}
	show, err := content.ShowUnlikeBranch(ctx, w)
	if err != nil {
		return err
	}
	if err := content.RecordDeletedIn(ctx, w, re.from.Tree); err != nil {
		return err
	}
	err = load(w, g, content.SnapshotIndex, (*content.Index).Keep, func(ix *content.Index) error { return ix.CheckOut(ctx, re.from.Tree, show) })
	if err != nil {
		return err
	}
	return load(w, w.Git(), content.CommitIndex, (*content.Index).Publish, func(ix *content.Index) error { return ix.Read(ctx, re.start) })
}

// load opens a kept index, calls read to fill it, and calls end to store it.
func load(w *repo.Worktree, g git.Repo, name string, end, read func(*content.Index) error) error {
	ix, err := content.Open(w, g, name)
	if err != nil {
		return err
	}
	defer ix.Drop()
	if err := read(ix); err != nil {
		return err
	}
	return end(ix)
}
