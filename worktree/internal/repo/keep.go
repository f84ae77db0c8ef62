package repo

import (
	"context"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Keep protects a commit from git gc. Call it before writing a record that names the commit.
func (w *Worktree) Keep(ctx context.Context, purpose, oid string) error {
	return w.Repo.keep(ctx, w.TaskID, purpose, oid)
}

func (r *Repo) keep(ctx context.Context, taskID, purpose, oid string) error {
	return r.Transact(ctx, r.Git(), "coven: keep", ref.Set(names.KeepRef(taskID, purpose), oid))
}

// Unkeep returns the edits that remove all refs that Keep created for a task.
func (w *Worktree) Unkeep() []ref.Edit {
	var edits []ref.Edit
	for _, purpose := range []string{names.KeepLanding, names.KeepMove, names.KeepTarget, names.KeepMerged, names.KeepWatched} {
		edits = append(edits, ref.Drop(names.KeepRef(w.TaskID, purpose)))
	}
	return edits
}
