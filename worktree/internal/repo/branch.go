package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// SlugField is the field of a template of branches with the title of the task.
const SlugField = "{slug}"

// DefaultBranch is the template of the branches of tasks, and that of coven 0.1.0.
const DefaultBranch = names.BranchPrefix + TaskField

// NewBranch returns the branch of a new worktree, without refs/heads/. slug is the title of the task.
func (r *Repo) NewBranch(taskID, slug string) string {
	template := cmp.Or(r.BranchTemplate, DefaultBranch)
	return strings.NewReplacer(TaskField, names.SafeName(taskID), SlugField, slug).Replace(template)
}

// BranchOf returns the branch of the task's worktree, or of its remains, without refs/heads/.
func (r *Repo) BranchOf(taskID string) string {
	rec, _ := r.ReadRecord(names.SafeName(taskID)) // without one, there may be remains
	return r.Worktree(taskID, rec).Branch
}

// branch returns the branch of the worktree with this name.
func (rec Record) branch(name string) string { return cmp.Or(rec.Branch, names.BranchPrefix+name) }

// BranchOwners maps full names of branches to the names of the tasks that have them.
type BranchOwners map[string]string

// BranchOwners reads the branches of all tasks.
func (r *Repo) BranchOwners() (BranchOwners, error) {
	all, err := r.TaskNames()
	if err != nil {
		return nil, fmt.Errorf("read the branches of tasks: %w", err)
	}
	owners := BranchOwners{}
	for _, name := range all {
		if rec, err := r.ReadRecord(name); err == nil {
			owners[names.HeadsPrefix+rec.branch(name)] = name
		}
	}
	return owners, nil
}

// Task returns the name of the task that has a branch. Branches with names.BranchPrefix belong to tasks, even if
// coven's records of those are gone.
func (o BranchOwners) Task(ref string) (name string, ok bool) {
	if name, ok = o[ref]; ok {
		return name, true
	}
	return strings.CutPrefix(ref, names.HeadsPrefix+names.BranchPrefix)
}

// A TaskRef is the branch of a task.
type TaskRef struct {
	ref.Ref
	Task string // the name of the task
}

// TaskRefs lists the branches of tasks that exist.
func (r *Repo) TaskRefs(ctx context.Context) ([]TaskRef, error) {
	owners, err := r.BranchOwners()
	if err != nil {
		return nil, err
	}
	refs, err := r.Git().Refs(ctx, names.HeadsPrefix+names.BranchPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the branches of tasks: %w", err)
	}
	var found []TaskRef
	for _, one := range refs {
		task, _ := owners.Task(one.Name)
		found = append(found, TaskRef{one, task})
	}
	for name, task := range owners {
		if strings.HasPrefix(name, names.HeadsPrefix+names.BranchPrefix) {
			continue
		}
		oid, err := r.Git().Ref(ctx, name)
		if errors.Is(err, ref.ErrNoRef) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the branches of tasks: %w", err)
		}
		found = append(found, TaskRef{ref.Ref{Name: name, Oid: oid}, task})
	}
	return found, nil
}
