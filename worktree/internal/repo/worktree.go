package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/cone"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
)

// ErrNoWorktree means that the task has no worktree.
var ErrNoWorktree = errors.New("the task has no worktree")

// A Worktree is the checkout of one task.
type Worktree struct {
	TaskID string
	Path   string // .coven/worktrees/<name> in the main checkout
	Branch string // coven/<name>
	Number int    // 1, and one more each time that Recreate made it again

	Repo  *Repo
	Name  string // SafeName(TaskID)
	Admin string // the worktree's own git directory, which the agent can write
	// partial permits access to the remains of a killed Recreate.
	Partial bool
	Cone    *cone.Cone // nil: W has all files of its branch
	// Of a W that has landed and was renamed: its branch is gone. See worktreeOf.
	LandedState string // its directory of coven's; empty: that of the task
	LandedTip   string // of the branch
}

// Record is task.json: coven's data about a worktree, stored where the agent cannot
// write.
type Record struct {
	Task  string `json:"task"`
	Base  string `json:"base"`
	Admin string `json:"admin"` // name in GitDir/worktrees
	Ready bool   `json:"ready"` // the checkout is complete
	// Settings of git when the files were written: see poolSettingsOf. They are empty if the worktree is not for the pool.
	Settings string     `json:"settings,omitempty"`
	Sparse   *cone.Cone `json:"sparse,omitempty"` // the files that W has; nil: all
	// Again means that the checkout was complete before Recreate started.
	Again bool `json:"again,omitempty"`
	Made  int  `json:"made,omitempty"` // how often Recreate made it again
}

// Find returns the worktree of a task, or ErrNoWorktree.
func (r *Repo) Find(_ context.Context, taskID string) (*Worktree, error) {
	rec, err := r.ReadRecord(names.SafeName(taskID))
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!rec.Ready || rec.Task != taskID) {
		return nil, fmt.Errorf("task %s: %w", taskID, ErrNoWorktree)
	}
	if err != nil {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	w := r.Worktree(taskID, rec)
	if err := w.CheckExists(); err != nil {
		return nil, err
	}
	return w, nil
}

// Here returns the worktree of a task that a directory is in, or ErrNoWorktree. It asks no git: an agent
// can change the answers of git.
func (r *Repo) Here(ctx context.Context, dir string) (*Worktree, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find the worktree: %w", err)
	}
	inside, err := filepath.Rel(filepath.Join(r.Root, names.WorktreesDir), resolved)
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorktree)
	}
	name, _, _ := strings.Cut(inside, string(filepath.Separator))
	rec, err := r.ReadRecord(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorktree)
	}
	return r.Find(ctx, rec.Task)
}

// Worktree returns the handle of a task's worktree, which need not exist.
func (r *Repo) Worktree(taskID string, rec Record) *Worktree {
	name := names.SafeName(taskID)
	w := &Worktree{
		TaskID: taskID, Branch: names.BranchPrefix + name, Path: r.WorktreePath(name),
		Number: rec.Made + 1, Repo: r, Name: name, Cone: rec.Sparse,
	}
	if rec.Admin != "" {
		w.Admin = filepath.Join(r.GitDir, "worktrees", rec.Admin)
	}
	return w
}

// WorktreePath returns the directory of the worktree with a name.
func (r *Repo) WorktreePath(name string) string {
	return filepath.Join(r.Root, names.WorktreesDir, name)
}

// ReadRecord returns the record of the worktree with a name.
func (r *Repo) ReadRecord(name string) (Record, error) {
	var rec Record
	raw, err := os.ReadFile(r.recordPath(name))
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(raw, &rec)
}

// WriteRecord replaces the record of the worktree with a name.
func (r *Repo) WriteRecord(name string, rec Record) error {
	return file.WriteJSON(r.recordPath(name), rec)
}

func (r *Repo) recordPath(name string) string { return r.StatePath("tasks", name, "task.json") }

// Tip returns the commit of the task's branch.
func (w *Worktree) Tip(ctx context.Context) (string, error) {
	if w.LandedTip != "" {
		return w.LandedTip, nil
	}
	tip, err := w.Repo.Git().Ref(ctx, names.HeadsPrefix+w.Branch)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", w.Branch, err)
	}
	return tip, nil
}

// MergeBase returns the newest common commit of the task's branch and another commit.
func (w *Worktree) MergeBase(ctx context.Context, commitish string) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	other, err := w.Repo.Git().Commit(ctx, commitish)
	if err != nil {
		return "", fmt.Errorf("find the merge base of %s: %w", w.Branch, err)
	}
	fork, err := w.Repo.Git().MergeBase(ctx, tip, other.Oid)
	if err != nil {
		return "", fmt.Errorf("find the merge base of %s and %s: %w", w.Branch, commitish, err)
	}
	return fork, nil
}

// Git returns W for git commands, without an index.
func (w *Worktree) Git() git.Repo {
	settings := []git.Setting{
		{Key: "core.sparseCheckout", Value: "false"},
		{Key: "core.splitIndex", Value: "false"},
		{Key: "core.untrackedCache", Value: "false"},
	}
	return git.Repo{
		Dir: w.Repo.GitDir, WorkTree: w.Path, Store: w.Repo.Store,
		Settings: append(settings, w.Repo.currentFilters()...),
	}
}

// StateDir is a directory for the files of agent CLIs about the task, outside of W. It exists as
// long as W does, once it is made.
func (w *Worktree) StateDir() string { return w.StatePath("state") }

// StatePath returns a path in coven's private directory of this task.
func (w *Worktree) StatePath(elem ...string) string {
	if w.LandedState != "" {
		return filepath.Join(append([]string{w.LandedState}, elem...)...)
	}
	return w.Repo.StatePath(append([]string{"tasks", w.Name}, elem...)...)
}

// Lock waits for the lock on the worktree until ctx is done. verb describes the operation to others who
// wait.
func (w *Worktree) Lock(ctx context.Context, verb string) (*lock.Lock, error) {
	return w.Repo.Lock(ctx, TaskLock(w.Name), verb+" "+w.TaskID)
}

// CheckExists fails with ErrNoWorktree if W does not exist or is empty. A W that contains only
// .git exists: the agent deleted all files. During Recreate, and after a killed one, W
// counts as missing because its content is incomplete.
func (w *Worktree) CheckExists() error {
	vacant, err := w.IsVacant()
	if err != nil {
		return fmt.Errorf("check %s: %w", w.Path, err)
	}
	if vacant {
		return fmt.Errorf("task %s: %s does not exist: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	if info, err := os.Stat(w.Path); err != nil || !info.IsDir() {
		return fmt.Errorf("task %s: %s is not a directory: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	rec, err := w.Repo.ReadRecord(w.Name)
	if err == nil && rec.Again && !w.Partial {
		return fmt.Errorf("task %s: %s is being recreated: %w", w.TaskID, w.Path, ErrNoWorktree)
	}
	return nil
}

// IsVacant reports whether nothing exists at W's path.
func (w *Worktree) IsVacant() (bool, error) {
	if !file.Exists(w.Path) {
		return true, nil
	}
	info, err := os.Lstat(w.Path)
	if err != nil || !info.IsDir() {
		return false, err
	}
	dir, err := os.Open(w.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	_, err = dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// OrMissing returns ErrNoWorktree instead of err if W has disappeared meanwhile.
func (w *Worktree) OrMissing(err error) error {
	if err == nil || errors.Is(err, ErrNoWorktree) {
		return err
	}
	if gone := w.CheckExists(); errors.Is(gone, ErrNoWorktree) {
		return errors.Join(gone, err)
	}
	return err
}

// TipIfAny is Tip, or "" if the branch does not exist.
func (w *Worktree) TipIfAny(ctx context.Context) (string, error) {
	tip, err := w.Tip(ctx)
	if errors.Is(err, git.ErrNoRef) {
		return "", nil
	}
	return tip, err
}
