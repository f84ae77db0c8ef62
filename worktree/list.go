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
}

// List lists the tasks' worktrees, including incomplete remains, sorted by name.
func List(ctx context.Context, r *repo.Repo) ([]Info, error) {
	found, err := r.TaskNames()
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	refs, err := r.Git().Refs(ctx, names.HeadsPrefix+names.BranchPrefix)
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	tips := map[string]string{}
	for _, ref := range refs {
		name := strings.TrimPrefix(ref.Name, names.HeadsPrefix+names.BranchPrefix)
		tips[name], found = ref.Oid, append(found, name)
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
		all = append(all, info(r, name, tips[name]))
	}
	return all, nil
}

func info(r *repo.Repo, name, tip string) Info {
	info := Info{Name: name, Path: r.WorktreePath(name), Branch: names.BranchPrefix + name, Tip: tip}
	if rec, err := r.ReadRecord(name); err == nil {
		info.TaskID, info.Ready = rec.Task, rec.Ready
	}
	_, err := os.Lstat(info.Path)
	info.Present = err == nil
	return info
}

// A Ref is one of coven's refs.
type Ref struct{ Name, Oid string }

// Refs lists all of coven's refs: refs/coven/ and refs/heads/coven/.
func Refs(ctx context.Context, r *repo.Repo) ([]Ref, error) {
	found, err := r.Git().Refs(ctx, "refs/coven/", names.HeadsPrefix+names.BranchPrefix)
	if err != nil {
		return nil, fmt.Errorf("list coven's refs: %w", err)
	}
	var refs []Ref
	for _, ref := range found {
		refs = append(refs, Ref(ref))
	}
	return refs, nil
}
