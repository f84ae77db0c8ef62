package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// ErrNoWorktree means that the task has no worktree.
var ErrNoWorktree = errors.New("the task has no worktree")

// A Worktree is the checkout of one task.
type Worktree struct {
	TaskID string
	Path   string // .coven/worktrees/<name> in the main checkout
	Branch string // coven/<name>
	Number int    // 1, and one more each time that Recreate made it again

	repo  *Repo
	name  string // SafeName(TaskID)
	admin string // the worktree's own git directory, which the agent can write
	// partial permits access to the remains of a killed Recreate.
	partial bool
	cone    *cone // nil: W has all files of its branch
	// Of a W that has landed and was renamed: its branch is gone. See worktreeOf.
	state string // its directory of coven's; empty: that of the task
	tip   string // of the branch
}

// record is task.json: coven's data about a worktree, stored where the agent cannot
// write.
type record struct {
	Task  string `json:"task"`
	Base  string `json:"base"`
	Admin string `json:"admin"` // name in GitDir/worktrees
	Ready bool   `json:"ready"` // the checkout is complete
	// Settings of git when the files were written: see poolSettings. Empty: not for the pool.
	Settings string `json:"settings,omitempty"`
	Sparse   *cone  `json:"sparse,omitempty"` // the files that W has; nil: all
	// Again means that the checkout was complete before Recreate started.
	Again bool `json:"again,omitempty"`
	Made  int  `json:"made,omitempty"` // how often Recreate made it again
}

// Find returns the worktree of a task, or ErrNoWorktree.
func (r *Repo) Find(_ context.Context, taskID string) (*Worktree, error) {
	rec, err := r.readRecord(SafeName(taskID))
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!rec.Ready || rec.Task != taskID) {
		return nil, fmt.Errorf("task %s: %w", taskID, ErrNoWorktree)
	}
	if err != nil {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	w := r.worktree(taskID, rec)
	if err := w.here(); err != nil {
		return nil, err
	}
	return w, nil
}

// Here returns the worktree of a task that a directory is in, or ErrNoWorktree. It asks no git: an agent
// can change what git would answer.
func (r *Repo) Here(ctx context.Context, dir string) (*Worktree, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find the worktree: %w", err)
	}
	inside, err := filepath.Rel(filepath.Join(r.Root, worktreesDir), resolved)
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorktree)
	}
	name, _, _ := strings.Cut(inside, string(filepath.Separator))
	rec, err := r.readRecord(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorktree)
	}
	return r.Find(ctx, rec.Task)
}

func (r *Repo) worktree(taskID string, rec record) *Worktree {
	name := SafeName(taskID)
	w := &Worktree{
		TaskID: taskID, Branch: branchPrefix + name, Path: r.worktreePath(name),
		Number: rec.Made + 1, repo: r, name: name, cone: rec.Sparse,
	}
	if rec.Admin != "" {
		w.admin = filepath.Join(r.GitDir, "worktrees", rec.Admin)
	}
	return w
}

func (r *Repo) worktreePath(name string) string {
	return filepath.Join(r.Root, worktreesDir, name)
}

func (r *Repo) readRecord(name string) (record, error) {
	var rec record
	raw, err := os.ReadFile(r.recordPath(name))
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(raw, &rec)
}

func (r *Repo) writeRecord(name string, rec record) error {
	return file.WriteJSON(r.recordPath(name), rec)
}

func (r *Repo) recordPath(name string) string { return r.ours("tasks", name, "task.json") }

// Tip returns the commit of the task's branch.
func (w *Worktree) Tip(ctx context.Context) (string, error) {
	if w.tip != "" {
		return w.tip, nil
	}
	tip, err := w.repo.git().Ref(ctx, headsPrefix+w.Branch)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", w.Branch, err)
	}
	return tip, nil
}

// PutTip moves the task's branch back to tip. First it stores the current commits of
// the branch under the returned ref. W's files do not change.
func (w *Worktree) PutTip(ctx context.Context, tip, note string) (rescue string, err error) {
	now, err := w.Tip(ctx)
	if err != nil || now == tip {
		return "", err
	}
	if rescue, err = w.Rescue(ctx, note, true); err != nil {
		return "", err
	}
	if err := w.repo.transact(ctx, w.repo.git(), note, git.Move(headsPrefix+w.Branch, tip, now)); err != nil {
		return "", fmt.Errorf("restore the branch of %s: %w", w.TaskID, err)
	}
	return rescue, nil
}

// MergeBase returns the newest common commit of the task's branch and another commit.
func (w *Worktree) MergeBase(ctx context.Context, commitish string) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	other, err := w.repo.git().Commit(ctx, commitish)
	if err != nil {
		return "", fmt.Errorf("find the merge base of %s: %w", w.Branch, err)
	}
	fork, err := w.repo.git().MergeBase(ctx, tip, other.Oid)
	if err != nil {
		return "", fmt.Errorf("find the merge base of %s and %s: %w", w.Branch, commitish, err)
	}
	return fork, nil
}

// git returns W for git commands, without an index.
func (w *Worktree) git() git.Repo {
	settings := []git.Setting{
		{Key: "core.sparseCheckout", Value: "false"},
		{Key: "core.splitIndex", Value: "false"},
		{Key: "core.untrackedCache", Value: "false"},
	}
	return git.Repo{
		Dir: w.repo.GitDir, WorkTree: w.Path, Store: w.repo.store,
		Settings: append(settings, w.repo.currentFilters()...),
	}
}

// Name is the task's name in paths and refs, unique in the repository.
func (w *Worktree) Name() string { return w.name }

// StateDir is a directory for what agent CLIs know about the task, outside of W. It exists as
// long as W does, once it is made.
func (w *Worktree) StateDir() string { return w.ours("state") }

// ours returns a path in coven's private directory of this task.
func (w *Worktree) ours(elem ...string) string {
	if w.state != "" {
		return filepath.Join(append([]string{w.state}, elem...)...)
	}
	return w.repo.ours(append([]string{"tasks", w.name}, elem...)...)
}

func (w *Worktree) lock(ctx context.Context, verb string) (*lock.Lock, error) {
	return w.repo.lock(ctx, taskLock(w.name), verb+" "+w.TaskID)
}
