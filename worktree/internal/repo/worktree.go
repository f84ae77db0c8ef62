package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/internal/cone"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// ErrNoWorktree means that the task has no worktree.
var ErrNoWorktree = errors.New("the task has no worktree")

// A Worktree is the checkout of one task.
type Worktree struct {
	TaskID string
	Path   string // see Place
	Branch string // without refs/heads/
	Number int    // 1, incremented each time that Recreate restores the worktree

	Repo  *Repo
	Name  string // SafeName(TaskID)
	Admin string // the worktree's git directory, which the agent can write
	// Partial permits access to the remains of a killed Recreate.
	Partial bool
	Cone    *cone.Cone // nil if all files of the branch are checked out
	// OwnGitFile means that the sandbox shows programs of the task their own .git file: see isolation.Files.
	OwnGitFile bool
	// RunDriver runs the shell command of a merge driver in the sandbox, at the top of the worktree. It can write only dir.
	// merged is false if the driver failed. Without RunDriver, the files that a driver would merge are in conflict.
	RunDriver func(ctx context.Context, command, dir string) (merged bool, err error)
}

// Record is task.json, coven's data about a worktree. It is stored where the agent cannot write.
type Record struct {
	Task string `json:"task"`
	Base string `json:"base"`
	// Merged lists the commits of the target that coven has brought into the branch, oldest first: Base if the target
	// contained it, and those that were merged. Records of older versions lack it.
	Merged []string `json:"merged,omitempty"`
	// Rebased lists the former tips of the branch that coven has rebased. Their work is in the branch.
	Rebased []string `json:"rebased,omitempty"`
	Admin   string   `json:"admin"` // name in GitDir/worktrees
	Ready   bool     `json:"ready"` // the checkout is complete
	// Dir is the worktree's directory, relative to the main checkout or absolute. If it is empty, the directory is
	// .coven/worktrees/<name>.
	Dir string `json:"dir,omitempty"`
	// Branch is the worktree's branch, without refs/heads/. If it is empty, the branch is coven/<name>.
	Branch string `json:"branch,omitempty"`
	// Root is the main checkout when the worktree was created. If that is still a checkout of the same repository, but
	// not this one, this repository is a copy, and the worktree is not its own.
	Root string `json:"root,omitempty"`
	// Settings are git's settings when the files were written: see pool.SettingsOf. They are empty if the
	// worktree must not go to the pool.
	Settings string     `json:"settings,omitempty"`
	Sparse   *cone.Cone `json:"sparse,omitempty"` // the files to check out; nil means all
	// Again means that the checkout was complete before Recreate started.
	Again bool `json:"again,omitempty"`
	Made  int  `json:"made,omitempty"` // number of times that Recreate has restored the worktree
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
		if to := w.movedTo(); to != "" {
			return nil, &MovedError{Task: taskID, Path: w.Path, To: to}
		}
		return nil, err
	}
	return w, nil
}

// Here returns the worktree that contains a directory, or ErrNoWorktree. It does not run git, because an
// agent can change git's answers.
func (r *Repo) Here(ctx context.Context, dir string) (*Worktree, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find the worktree: %w", err)
	}
	name := r.worktreeAt(resolved)
	rec, err := r.ReadRecord(name)
	if name == "" || err != nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorktree)
	}
	return r.Find(ctx, rec.Task)
}

// Worktree returns the handle of a task's worktree. The worktree need not exist.
func (r *Repo) Worktree(taskID string, rec Record) *Worktree {
	name := names.SafeName(taskID)
	w := &Worktree{
		TaskID: taskID, Branch: rec.branch(name), Path: r.pathOf(name, rec),
		Number: rec.Made + 1, Repo: r, Name: name, Cone: rec.Sparse,
	}
	if rec.Admin != "" {
		w.Admin = filepath.Join(r.GitDir, "worktrees", rec.Admin)
	}
	return w
}

// ReadRecord reads the record of the worktree with this name.
func (r *Repo) ReadRecord(name string) (Record, error) {
	var rec Record
	err := file.ReadJSON(r.recordPath(name), &rec)
	return rec, err
}

// WriteRecord replaces the record of the worktree with this name.
func (r *Repo) WriteRecord(name string, rec Record) error {
	return file.WriteJSON(r.recordPath(name), rec)
}

func (r *Repo) recordPath(name string) string { return r.StatePath("tasks", name, "task.json") }

// Tip returns the commit of the task's branch.
func (w *Worktree) Tip(ctx context.Context) (string, error) {
	tip, err := w.Repo.Git().Ref(ctx, names.HeadsPrefix+w.Branch)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", w.Branch, err)
	}
	return tip, nil
}

// Git returns the git.Repo of the worktree. It has no index.
func (w *Worktree) Git() git.Repo {
	settings := []git.Setting{
		{Key: "core.sparseCheckout", Value: "false"},
		{Key: "core.splitIndex", Value: "false"},
		{Key: "core.untrackedCache", Value: "false"},
		// Names that another system takes for .git must not land from this one.
		{Key: "core.protectHFS", Value: "true"},
		{Key: "core.protectNTFS", Value: "true"},
	}
	return git.Repo{
		Dir: w.Repo.GitDir, WorkTree: w.Path, Store: w.Repo.Store,
		Settings: append(settings, w.Repo.currentFilters()...),
	}
}

// StateDir returns a directory for files of agent CLIs about the task, outside the worktree. Once created,
// it exists as long as the worktree does.
func (w *Worktree) StateDir() string { return w.StatePath("state") }

// StatePath returns a path in coven's private directory of the task.
func (w *Worktree) StatePath(elem ...string) string {
	return w.Repo.StatePath(append([]string{"tasks", w.Name}, elem...)...)
}

// Lock waits for the lock on the worktree until ctx is done. Other waiters see verb and the task.
func (w *Worktree) Lock(ctx context.Context, verb string) (*lock.Lock, error) {
	return w.Repo.Lock(ctx, names.TaskLock(w.Name), verb+" "+w.TaskID)
}

// CheckExists fails with ErrNoWorktree if the worktree does not exist or is empty. A worktree that contains
// only .git exists: the agent has deleted all files. During Recreate, and after a killed one, the worktree
// counts as missing, because its content is incomplete.
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

// IsVacant reports whether the worktree's path does not exist or is an empty directory.
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

// OrMissing adds ErrNoWorktree to err if the worktree has disappeared.
func (w *Worktree) OrMissing(err error) error {
	if err == nil || errors.Is(err, ErrNoWorktree) {
		return err
	}
	if gone := w.CheckExists(); errors.Is(gone, ErrNoWorktree) {
		return errors.Join(gone, err)
	}
	return err
}

// TipIfAny is like Tip, but returns "" if the branch does not exist.
func (w *Worktree) TipIfAny(ctx context.Context) (string, error) {
	tip, err := w.Tip(ctx)
	if errors.Is(err, ref.ErrNoRef) {
		return "", nil
	}
	return tip, err
}
