package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// An AddRequest describes a new worktree.
type AddRequest struct {
	TaskID string
	Base   string // an oid or a revision, usually a target's tip
	// SavedFirst means that the caller takes a snapshot before anything runs in the worktree: the files need
	// not be compared again for it.
	SavedFirst bool
}

// A LeftoverError means that a directory or branch with the task's name already exists.
type LeftoverError struct {
	TaskID   string
	Owner    string // the task it belongs to, if coven knows
	Path     string // the directory, empty when there is none
	Branch   string // the branch, empty when there is none
	Unlanded bool   // it may contain work that Base does not have
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
func (r *Repo) Add(ctx context.Context, req AddRequest) (*Worktree, error) {
	if req.TaskID == "" {
		return nil, errors.New("add a worktree: task has no ID")
	}
	start, err := r.git().Commit(ctx, req.Base)
	if err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	l, err := r.lock(ctx, taskLock(SafeName(req.TaskID)), "add "+req.TaskID)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	if r.Pool.Bytes > 0 && len(r.pool()) == 0 {
		_ = r.Examine(ctx) // what has landed just now is mostly what this worktree can start from
	}
	w, from, err := r.begin(ctx, req.TaskID, start.Oid)
	if err != nil {
		return nil, err
	}
	failpoint.Point("add.registered")
	settings, err := w.poolSettings(ctx)
	if err == nil {
		err = w.putCone(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	if err := w.fill(ctx, from, start.Oid); err != nil {
		return nil, fmt.Errorf("check out %s: %w", w.Path, err)
	}
	failpoint.Point("add.filled")
	if err := w.supply(ctx, start.Oid); err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	if req.SavedFirst {
		r.memo.fresh.Store(w.ours(commitIndex), start.Tree)
	}
	rec := record{Task: w.TaskID, Base: start.Oid, Admin: filepath.Base(w.admin), Settings: settings, Sparse: w.cone, Ready: true}
	if err := r.writeRecord(w.name, rec); err != nil {
		return nil, fmt.Errorf("add a worktree for %s: %w", req.TaskID, err)
	}
	return w, nil
}

// begin creates the branch, the directory and the git directory. The directory has files of the
// pool if there were some.
func (r *Repo) begin(ctx context.Context, taskID, start string) (w *Worktree, from parked, err error) {
	if err := EnsureCovenDir(r.Root); err != nil {
		return nil, parked{}, err
	}
	l, err := r.lock(ctx, worktreesLock, "add "+taskID)
	if err != nil {
		return nil, parked{}, err
	}
	defer l.Release()
	if err := r.clearUnready(ctx, taskID); err != nil {
		return nil, parked{}, err
	}
	if err := r.leftover(ctx, taskID, start); err != nil {
		return nil, parked{}, err
	}
	rec := record{Task: taskID, Base: start}
	if rec.Sparse, err = r.newCone(ctx); err != nil {
		return nil, parked{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	w = r.worktree(taskID, rec)
	if err := r.writeRecord(w.name, rec); err != nil {
		return nil, parked{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	failpoint.Point("add.recorded")
	from = w.take(ctx, start)
	err = r.register(ctx, registration{w: w, start: start, admin: func(admin string) error {
		rec.Admin = admin
		return r.writeRecord(w.name, rec)
	}})
	if err != nil {
		return nil, parked{}, fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	return r.worktree(taskID, rec), from, nil
}

// admins lists GitDir/worktrees.
func (r *Repo) admins() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.GitDir, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// adminPath returns the checkout that a git directory belongs to, or "" if that is
// unknown, for example while git creates it.
func (r *Repo) adminPath(admin string) string {
	dir := filepath.Join(r.GitDir, "worktrees", admin)
	raw, err := file.Read(filepath.Join(dir, "gitdir"), maxGitFile) // an agent may have put a pipe there
	if err != nil {
		return ""
	}
	link := strings.TrimSuffix(string(raw), "\n")
	if link == "" {
		return ""
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join(dir, link)
	}
	return filepath.Dir(link)
}

// fill checks out the files and writes a matching index for W's git. from is the entry of the
// pool that W's files were; zero: there are no files.
func (w *Worktree) fill(ctx context.Context, from parked, start string) error {
	if from.ID != "" {
		if err := w.fillBy(ctx, start, func(ix *index) error { return w.reuse(ctx, ix, from, start) }); err == nil || ctx.Err() != nil {
			return err
		}
		if err := w.empty(); err != nil {
			return err
		}
		failpoint.Point("add.emptied")
	}
	return w.fillBy(ctx, start, func(ix *index) error { return ix.checkOut(ctx, start, noneShown) })
}

func (w *Worktree) fillBy(ctx context.Context, start string, write func(*index) error) error {
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return err
	}
	defer ix.drop()
	if err := write(ix); err != nil {
		return err
	}
	if tree, err := w.repo.git().Tree(ctx, start); err == nil {
		ix.setEqual(tree)
	}
	return ix.publish()
}

// leftover returns a *LeftoverError if a worktree or branch of the task exists.
func (r *Repo) leftover(ctx context.Context, taskID, start string) error {
	name := SafeName(taskID)
	found := &LeftoverError{TaskID: taskID}
	if _, err := os.Lstat(r.worktreePath(name)); err == nil {
		found.Path = r.worktreePath(name)
	}
	tip, err := r.git().Ref(ctx, headsPrefix+branchPrefix+name)
	if err == nil {
		found.Branch = branchPrefix + name
	} else if !errors.Is(err, git.ErrNoRef) {
		return fmt.Errorf("add a worktree for %s: %w", taskID, err)
	}
	rec, err := r.readRecord(name)
	if err == nil {
		found.Owner = rec.Task
	}
	if found.Path == "" && found.Branch == "" && found.Owner == "" {
		return nil
	}
	found.Unlanded = r.unlanded(ctx, r.worktree(taskID, rec), *found, tip, start)
	return found
}

// unlanded reports whether a leftover may contain work that start does not have. In
// case of doubt it returns true.
func (r *Repo) unlanded(ctx context.Context, w *Worktree, found LeftoverError, tip, start string) bool {
	if found.Path != "" && found.Branch == "" {
		return true
	}
	if found.Path != "" {
		tree, err := w.Tree(ctx)
		commit, commitErr := r.git().Commit(ctx, tip)
		if err != nil || commitErr != nil || tree != commit.Tree {
			return true
		}
	}
	return found.Branch != "" && r.adds(ctx, tip, start)
}

// adds reports whether merging tip into start would change anything: a branch
// that landed by squash is not an ancestor, and still adds nothing.
func (r *Repo) adds(ctx context.Context, tip, start string) bool {
	merged, err := r.merge(ctx, tip, start)
	if err != nil {
		return true
	}
	commit, err := r.git().Commit(ctx, start)
	return err != nil || merged != commit.Tree
}
