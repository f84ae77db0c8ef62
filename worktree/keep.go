package worktree

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
	keepPrefix  = "refs/coven/keep/"
	keepLanding = "landing"    // the commit that a recorded intent is about to land
	keepMove    = "integrate"  // the merge that integrate.json moves W to
	keepTarget  = "conflicted" // the target's commit that conflicted.json names
	keepMerged  = "merged"     // what outside.json names
	keepWatched = "watched"    // a tree of the trees that watch.json names
)

func keepRef(taskID, purpose string) string { return keepPrefix + SafeName(taskID) + "/" + purpose }

// keep creates a ref for a commit that a record is about to name.
func (w *Worktree) keep(ctx context.Context, purpose, oid string) error {
	return w.repo.keep(ctx, w.TaskID, purpose, oid)
}

func (r *Repo) keep(ctx context.Context, taskID, purpose, oid string) error {
	return r.transact(ctx, r.git(), "coven: keep", git.Set(keepRef(taskID, purpose), oid))
}

// unkeep returns the edits that remove all such refs of a task.
func (w *Worktree) unkeep() []git.Edit {
	var edits []git.Edit
	for _, purpose := range []string{keepLanding, keepMove, keepTarget, keepMerged, keepWatched} {
		edits = append(edits, git.Drop(keepRef(w.TaskID, purpose)))
	}
	return edits
}

// hasCommit reports whether a commit and its tree are in the repository.
func (r *Repo) hasCommit(ctx context.Context, oid string) (bool, error) {
	tree, err := r.git().Tree(ctx, oid)
	if git.ExitCode(err) > 0 {
		return false, nil
	}
	has := false
	if err == nil {
		has, err = r.git().Has(ctx, tree, "tree")
	}
	if err != nil {
		return false, fmt.Errorf("look for commit %s: %w", oid, err)
	}
	return has, nil
}
