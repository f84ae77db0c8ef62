package worktree

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// An Info describes a task's worktree or its remains.
type Info struct {
	Name    string // SafeName of the task
	TaskID  string // empty without a record
	Path    string
	Branch  string
	Tip     string // empty if the branch does not exist
	Present bool   // the directory exists
	Ready   bool   // Add finished
	Foreign bool   // it belongs to another user of a shared repository
}

// List lists the tasks' worktrees, including incomplete remains, sorted by name.
func List(ctx context.Context, r *repo.Repo) ([]Info, error) {
	found, err := r.TaskNames()
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	refs, err := r.TaskRefs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	tips := map[string]string{}
	for _, ref := range refs {
		tips[ref.Name], found = ref.Oid, append(found, ref.Task)
	}
	for _, top := range r.WorktreeDirs() {
		for _, dir := range file.Directories(top) {
			if !strings.HasPrefix(dir.Name(), ".") {
				found = append(found, dir.Name())
			}
		}
	}
	slices.Sort(found)
	var all []Info
	for _, name := range slices.Compact(found) {
		all = append(all, info(r, name, tips))
	}
	return all, nil
}

// info describes the worktree with this name. tips has the commits of the tasks' branches by their full names.
func info(r *repo.Repo, name string, tips map[string]string) Info {
	info := Info{Name: name, Path: r.WorktreePath(name), Branch: names.BranchPrefix + name}
	if rec, err := r.ReadRecord(name); err == nil {
		info.TaskID, info.Ready, info.Branch = rec.Task, rec.Ready, r.Worktree(rec.Task, rec).Branch
	}
	info.Tip = tips[names.HeadsPrefix+info.Branch]
	_, err := os.Lstat(info.Path)
	info.Present, info.Foreign = err == nil, r.IsForeignTask(name)
	return info
}

// A Ref is one of coven's refs.
type Ref struct{ Name, Oid string }

// Refs lists all of coven's refs: refs/coven/ and the branches of tasks.
func Refs(ctx context.Context, r *repo.Repo) ([]Ref, error) {
	found, err := r.Git().Refs(ctx, names.CovenPrefix)
	if err != nil {
		return nil, fmt.Errorf("list coven's refs: %w", err)
	}
	branches, err := r.TaskRefs(ctx)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, ref := range found {
		refs = append(refs, Ref(ref))
	}
	for _, branch := range branches {
		refs = append(refs, Ref(branch.Ref))
	}
	return refs, nil
}
