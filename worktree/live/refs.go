package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Lock excludes other processes that take over the same task.
func Lock(ctx context.Context, r *repo.Repo, taskID string) (release func(), err error) {
	l, err := r.Lock(ctx, "take-over-"+names.SafeName(taskID), "take over "+taskID)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// CheckBase returns an error unless the commit from which a task starts is in this repository, or on the target, a remote-tracking ref.
func CheckBase(ctx context.Context, r *repo.Repo, target, base string) error {
	has, err := hasCommit(ctx, r, base)
	if err != nil || has {
		return err
	}
	if _, err := remote.FetchUpstream(ctx, r, target, Timeout); err != nil {
		return err
	}
	if has, err = hasCommit(ctx, r, base); err == nil && !has {
		err = fmt.Errorf("this repository has no commit %q", base)
	}
	return err
}

func hasCommit(ctx context.Context, r *repo.Repo, oid string) (bool, error) {
	if !object.IsID(oid) {
		return false, fmt.Errorf("%q is not a commit", oid)
	}
	return r.Git().HasCommit(ctx, oid)
}

// BranchOf returns the branch of a task in this repository.
func BranchOf(ctx context.Context, r *repo.Repo, taskID string) (Branch, error) {
	w, rec, err := worktreeOf(r, taskID)
	if err != nil {
		return Branch{}, err
	}
	tip, err := w.TipIfAny(ctx)
	return Branch{Tip: tip, Merged: rec.Merged, Rebased: rec.Rebased}, err
}

func worktreeOf(r *repo.Repo, taskID string) (*repo.Worktree, repo.Record, error) {
	rec, err := r.ReadRecord(names.SafeName(taskID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, rec, err
	}
	rec.Task = taskID
	return r.Worktree(taskID, rec), rec, nil
}

// A Worktree describes the worktree of a session on another machine.
type Worktree struct {
	Slug string // of the name of the task's branch
	Base string // commit from which the task starts
	Made int    // how often it has been made, 1 for the first one; 0 if it was never made
}

// Put creates the refs of a session of another machine in this repository: the task's branch, which must not exist, and its snapshots, which
// replace those that exist. If the session has a worktree there, worktree.Recreate makes it here.
func Put(ctx context.Context, r *repo.Repo, taskID string, s State, t Worktree) error {
	if t.Made > 0 {
		rec := r.NewRecord(taskID, t.Slug, t.Base)
		rec.Ready, rec.Made, rec.Merged, rec.Rebased = true, t.Made-1, s.Branch.Merged, s.Branch.Rebased
		if err := r.WriteRecord(names.SafeName(taskID), rec); err != nil {
			return err
		}
		failpoint.Point("live.recorded")
	}
	w, _, err := worktreeOf(r, taskID)
	if err != nil {
		return err
	}
	var edits []ref.Edit
	if s.Branch.Tip != "" {
		edits = append(edits, ref.Create(names.HeadsPrefix+w.Branch, s.Branch.Tip))
	}
	last, err := snapshot.Last(ctx, r, s.Session)
	if err != nil {
		return err
	}
	name := names.SnapshotRef(s.Session)
	switch {
	case last.Commit == s.Snapshot:
	case last.Commit == "":
		edits = append(edits, ref.Create(name, s.Snapshot))
	case s.Snapshot == "":
		edits = append(edits, ref.Delete(name, last.Commit))
	default:
		edits = append(edits, ref.Move(name, s.Snapshot, last.Commit))
	}
	if len(edits) == 0 {
		return nil
	}
	return r.Transact(ctx, r.Git(), "coven: take over "+w.Name, edits...)
}
