package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// archiveTries limits the attempts to add a session to an archive while other clones on the machine add theirs.
const archiveTries = 30

// ArchiveRef returns the ref of the sessions that ended on a machine in the month of t. Each machine has its own, so that
// it need not fetch the sessions of others to add one.
func ArchiveRef(machine string, t time.Time) string {
	return names.ArchivePrefix + t.UTC().Format("2006-01") + "/" + names.SafeName(machine)
}

// Archive adds the session at a tip, which is over or about to land, to an archive at the remote: a commit whose tree has a
// directory for each session, and whose last parent is the tip.
func Archive(ctx context.Context, r *repo.Repo, name, taskID, archiveRef string, s State) error {
	record, err := r.Git().Tree(ctx, s.Tip)
	for range archiveTries {
		if err == nil {
			err = archive(ctx, r, name, taskID, s, record, archiveRef)
		}
		if !errors.As(err, new(*remote.MovedError)) {
			break
		}
		err = nil
	}
	if err != nil {
		return fmt.Errorf("archive the session of %s: %w", taskID, err)
	}
	failpoint.Point("live.archived")
	return nil
}

func archive(ctx context.Context, r *repo.Repo, name, taskID string, s State, record, archiveRef string) error {
	found, err := remote.Refs(ctx, r, name, Timeout, archiveRef)
	if err != nil {
		return err
	}
	old := found[archiveRef]
	var entries []object.Entry
	var parents []string
	if old != "" {
		if has, err := r.Git().HasCommit(ctx, old); err != nil || !has {
			if err := remote.Fetch(ctx, r, name, Timeout, archiveRef); err != nil {
				return err
			}
		}
		tree, err := r.Git().Tree(ctx, old)
		if err != nil {
			return err
		}
		if entries, err = r.Git().Level(ctx, tree); err != nil {
			return err
		}
		parents = append(parents, old)
	}
	dir := names.SafeName(s.Session)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e object.Entry) bool { return e.Path == dir })
	tree, err := r.Git().MakeTree(ctx, append(entries, object.Entry{Mode: object.ModeTree, Oid: record, Path: dir}))
	if err != nil {
		return err
	}
	next, err := r.MakeCommit(ctx, tree, "coven: end of session "+s.Session+" of "+taskID, nil, append(parents, s.Tip)...)
	if err != nil {
		return err
	}
	return remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: archiveRef, Old: old, New: next})
}

// Rescue stores a state of a session, which another machine has continued, at the remote, and returns its ref there. It can land no more.
func Rescue(ctx context.Context, r *repo.Repo, name, taskID string, s State) (string, error) {
	oid, err := Store(ctx, r, taskID, s)
	if err != nil {
		return "", err
	}
	ref := names.RescuePrefix(taskID) + "late-" + oid[:12]
	if err := remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: ref, New: oid}); err != nil {
		return "", fmt.Errorf("store the work of this machine: %w", err)
	}
	failpoint.Point("live.rescued")
	return ref, nil
}
