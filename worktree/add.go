package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/covendir"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/supply"
)

// An AddRequest describes a new worktree.
type AddRequest struct {
	TaskID string
	Slug   string // the title of the task, for the name of the branch
	Base   string // an oid or a revision, usually a target's tip
	Target string // a commit of the target, or "" if Base is not on a target
	// SavedFirst means that the caller takes a snapshot before any program runs in the worktree. That
	// snapshot then needs no comparison of the files.
	SavedFirst bool
}

// A LeftoverError means that a directory or branch with the task's name already exists.
type LeftoverError struct {
	TaskID   string
	Owner    string // the task that owns the record, empty if unknown
	Path     string // the directory, empty if it does not exist
	Branch   string // the branch, empty if it does not exist
	Unlanded bool   // there may be work that Base does not contain
}

func (e *LeftoverError) Error() string {
	var there []string
	if e.Path != "" {
		there = append(there, "directory "+e.Path)
	}
	if e.Branch != "" {
		there = append(there, "branch "+e.Branch)
	}
	if len(there) == 0 {
		there = append(there, "a record of task "+e.Owner)
	}
	text := fmt.Sprintf("task %s: %s left over from an earlier run", e.TaskID, strings.Join(there, " and "))
	if e.Unlanded {
		text += " with work that has not landed"
	}
	return text
}

// Add creates the task's worktree on a new branch. If an earlier run left a worktree or
// branch, the error is a *LeftoverError. Only an incomplete worktree of a killed Add is
// removed, because it cannot contain work.
func Add(ctx context.Context, r *repo.Repo, req AddRequest) (*repo.Worktree, error) {
	if req.TaskID == "" {
		return nil, errors.New("add a worktree: task has no ID")
	}
	start, err := r.Git().Commit(ctx, req.Base)
	if err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	l, err := r.Lock(ctx, names.TaskLock(names.SafeName(req.TaskID)), "add "+req.TaskID)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	w, from, err := beginAdd(ctx, r, req, start.Oid)
	if err != nil {
		return nil, err
	}
	failpoint.Point("add.registered")
	settings, err := pool.SettingsOf(ctx, w)
	if err == nil {
		err = sparse.WriteCone(ctx, w)
	}
	if err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	if err := fill(ctx, w, from, start.Oid); err != nil {
		return nil, fmt.Errorf("check out %s: %w", w.Path, err)
	}
	failpoint.Point("add.filled")
	if err := supply.Into(ctx, w, start.Oid); err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	if req.SavedFirst {
		r.Memo.Fresh.Store(w.StatePath(content.CommitIndex), start.Tree)
	}
	rec := r.NewRecord(w.TaskID, req.Slug, start.Oid)
	rec.Admin, rec.Settings, rec.Sparse, rec.Ready = filepath.Base(w.Admin), settings, w.Cone, true
	if req.Target != "" {
		on, err := r.Git().IsAncestor(ctx, start.Oid, req.Target)
		if err != nil {
			return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
		}
		if on {
			rec.Merged = []string{start.Oid}
		}
	}
	if err := r.WriteRecord(w.Name, rec); err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	return w, nil
}

// beginAdd creates the branch, the directory and the git directory. The directory contains the files of the
// returned pool entry, if the pool had a suitable one.
func beginAdd(ctx context.Context, r *repo.Repo, req AddRequest, start string) (w *repo.Worktree, from pool.Entry, err error) {
	taskID := req.TaskID
	if err := covendir.Ensure(r.Root); err != nil {
		return nil, pool.Entry{}, err
	}
	if err := r.EnsurePlace(); err != nil {
		return nil, pool.Entry{}, err
	}
	l, err := r.Lock(ctx, names.WorktreesLock, "add "+taskID)
	if err != nil {
		return nil, pool.Entry{}, err
	}
	defer l.Release()
	if err := clearUnready(ctx, r, taskID); err != nil {
		return nil, pool.Entry{}, err
	}
	if err := leftover(ctx, r, taskID, start); err != nil {
		return nil, pool.Entry{}, err
	}
	if err := checkBranch(ctx, r, TaskTitle{taskID, req.Slug}); err != nil {
		return nil, pool.Entry{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	rec := r.NewRecord(taskID, req.Slug, start)
	if rec.Sparse, err = sparse.NewCone(ctx, r); err != nil {
		return nil, pool.Entry{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	w = r.Worktree(taskID, rec)
	if err := r.WriteRecord(w.Name, rec); err != nil {
		return nil, pool.Entry{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	failpoint.Point("add.recorded")
	from = pool.Take(ctx, w, start)
	err = register(ctx, r, registration{w: w, start: start, admin: func(admin string) error {
		rec.Admin = admin
		return r.WriteRecord(w.Name, rec)
	}})
	if err != nil {
		return nil, pool.Entry{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	return r.Worktree(taskID, rec), from, nil
}

// fill checks out the files and writes a matching index for the worktree's git. from is the pool entry that
// supplied the existing files; it is the zero Entry if there are none.
func fill(ctx context.Context, w *repo.Worktree, from pool.Entry, start string) error {
	if from.ID != "" {
		if err := fillBy(ctx, w, start, func(ix *content.Index) error { return pool.Reuse(ctx, w, ix, from, start) }); err == nil || ctx.Err() != nil {
			return err
		}
		if err := pool.DiscardFiles(w); err != nil {
			return err
		}
		failpoint.Point("add.emptied")
	}
	return fillBy(ctx, w, start, func(ix *content.Index) error { return ix.CheckOut(ctx, start, content.ShowNone) })
}

func fillBy(ctx context.Context, w *repo.Worktree, start string, write func(*content.Index) error) error {
	ix, err := content.Open(w, w.Git(), content.CommitIndex)
	if err != nil {
		return err
	}
	defer ix.Drop()
	if err := write(ix); err != nil {
		return err
	}
	if tree, err := w.Repo.Git().Tree(ctx, start); err == nil {
		ix.SetEqual(tree)
	}
	return ix.Publish()
}

// leftover returns a *LeftoverError if a worktree or branch of the task exists.
func leftover(ctx context.Context, r *repo.Repo, taskID, start string) error {
	name := names.SafeName(taskID)
	found := &LeftoverError{TaskID: taskID}
	if _, err := os.Lstat(r.WorktreePath(name)); err == nil {
		found.Path = r.WorktreePath(name)
	}
	branch := r.BranchOf(taskID)
	tip, err := r.Git().Ref(ctx, names.HeadsPrefix+branch)
	if err == nil {
		found.Branch = branch
	} else if !errors.Is(err, ref.ErrNoRef) {
		return fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	rec, err := r.ReadRecord(name)
	if err == nil {
		found.Owner = rec.Task
	}
	if found.Path == "" && found.Branch == "" && found.Owner == "" {
		return nil
	}
	found.Unlanded = unlanded(ctx, r, r.Worktree(taskID, rec), *found, tip, start)
	return found
}

// unlanded reports whether a leftover may contain work that start does not contain. When in doubt, it
// returns true.
func unlanded(ctx context.Context, r *repo.Repo, w *repo.Worktree, found LeftoverError, tip, start string) bool {
	if found.Path != "" && found.Branch == "" {
		return true
	}
	if found.Path != "" {
		tree, err := content.Tree(ctx, w)
		commit, commitErr := r.Git().Commit(ctx, tip)
		if err != nil || commitErr != nil || tree != commit.Tree {
			return true
		}
	}
	return found.Branch != "" && adds(ctx, w, tip, start)
}

// adds reports whether merging tip into start would change anything. A branch that landed by squash is not
// an ancestor of start, but adds nothing.
func adds(ctx context.Context, w *repo.Worktree, tip, start string) bool {
	merged, err := integrate.MergeCommits(ctx, w, tip, start)
	if err != nil {
		return true
	}
	commit, err := w.Repo.Git().Commit(ctx, start)
	return err != nil || merged != commit.Tree
}
