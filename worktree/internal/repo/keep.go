package repo

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
)

// Keep protects a commit from git gc. Call it before writing a record that names the commit.
func (w *Worktree) Keep(ctx context.Context, purpose, oid string) error {
	return w.Repo.keep(ctx, w.TaskID, purpose, oid)
}

func (r *Repo) keep(ctx context.Context, taskID, purpose, oid string) error {
	return r.Transact(ctx, r.Git(), "coven: keep", git.Set(names.KeepRef(taskID, purpose), oid))
}

// Unkeep returns the edits that remove all refs that Keep created for a task.
func (w *Worktree) Unkeep() []git.Edit {
	var edits []git.Edit
	for _, purpose := range []string{names.KeepLanding, names.KeepMove, names.KeepTarget, names.KeepMerged, names.KeepWatched} {
		edits = append(edits, git.Drop(names.KeepRef(w.TaskID, purpose)))
	}
	return edits
}

// HasCommit reports whether the repository has a commit and its tree.
func (r *Repo) HasCommit(ctx context.Context, oid string) (bool, error) {
	tree, err := r.Git().Tree(ctx, oid)
	if git.ExitCode(err) > 0 {
		return false, nil
	}
	has := false
	if err == nil {
		has, err = r.Git().Has(ctx, tree, "tree")
	}
	if err != nil {
		return false, fmt.Errorf("look for commit %s: %w", oid, err)
	}
	return has, nil
}
