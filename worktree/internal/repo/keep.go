package repo

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/git"
)

// A record on disk can name a commit that no branch contains yet. Before the record is
// written, a ref is created that protects the commit from git gc:
// refs/coven/keep/<task>/<purpose>. The next record of its kind moves the ref, and it
// is removed with the worktree.
const (
	KeepPrefix  = "refs/coven/keep/"
	KeepLanding = "landing"    // the commit that a recorded intent is about to land
	KeepMove    = "integrate"  // the merge that integrate.json moves W to
	KeepTarget  = "conflicted" // the target's commit that conflicted.json names
	KeepMerged  = "merged"     // what outside.json names
	KeepWatched = "watched"    // a tree of the trees that watch.json names
)

// KeepRef returns the ref that protects a commit of a task for a purpose.
func KeepRef(taskID, purpose string) string { return KeepPrefix + SafeName(taskID) + "/" + purpose }

// Keep creates a ref for a commit that a record is about to name.
func (w *Worktree) Keep(ctx context.Context, purpose, oid string) error {
	return w.Repo.keep(ctx, w.TaskID, purpose, oid)
}

func (r *Repo) keep(ctx context.Context, taskID, purpose, oid string) error {
	return r.Transact(ctx, r.Git(), "coven: keep", git.Set(KeepRef(taskID, purpose), oid))
}

// Unkeep returns the edits that remove all such refs of a task.
func (w *Worktree) Unkeep() []git.Edit {
	var edits []git.Edit
	for _, purpose := range []string{KeepLanding, KeepMove, KeepTarget, KeepMerged, KeepWatched} {
		edits = append(edits, git.Drop(KeepRef(w.TaskID, purpose)))
	}
	return edits
}

// HasCommit reports whether a commit and its tree are in the repository.
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
