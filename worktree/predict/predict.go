// Package predict merges the snapshots of two tasks without changing anything, to find the files in which the changes of the tasks
// will conflict.
package predict

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Change is the present change of a task.
type Change struct {
	Snapshot snapshot.Snapshot

	changed []object.Change
}

// Of returns the change of a session since the commit that its worktree started from, as of its last snapshot. The change is empty
// if there is no snapshot. known is an earlier change of the session, or zero.
func Of(ctx context.Context, r *repo.Repo, session, base string, known Change) (c Change, err error) {
	c.Snapshot, err = snapshot.Last(ctx, r, session)
	if err != nil || c.Snapshot.N == 0 {
		return c, err
	}
	if c.Snapshot.Commit == known.Snapshot.Commit {
		return known, nil
	}
	all, err := r.Git().Changes(ctx, base, c.Snapshot.Tree)
	if err != nil {
		return c, fmt.Errorf("read the change of session %s: %w", session, err)
	}
	c.changed = slices.DeleteFunc(all, func(one object.Change) bool { return content.IsReserved(one.Path) })
	return c, nil
}

// Conflicts returns the files in which two changes conflict, sorted. It starts a git process only if the changes have files or
// directories in common. A file with a merge driver of the configuration counts as merged: the driver does not run.
func Conflicts(ctx context.Context, r *repo.Repo, one, two Change) ([]string, error) {
	if !overlap(one.changed, two.changed) {
		return nil, nil
	}
	left, err := commitOf(ctx, r, one.Snapshot)
	if err != nil {
		return nil, err
	}
	right, err := commitOf(ctx, r, two.Snapshot)
	if err != nil {
		return nil, err
	}
	return merge(ctx, r, left, right)
}

// WithTarget is like Conflicts for a change and the tip of its target. base is the commit that the worktree started from. An empty
// change has no conflicts.
func WithTarget(ctx context.Context, r *repo.Repo, c Change, base, tip string) ([]string, error) {
	if len(c.changed) == 0 {
		return nil, nil
	}
	all, err := r.Git().Changes(ctx, base, tip)
	if err != nil {
		return nil, fmt.Errorf("read the change of the target: %w", err)
	}
	if !overlap(c.changed, all) {
		return nil, nil
	}
	left, err := commitOf(ctx, r, c.Snapshot)
	if err != nil {
		return nil, err
	}
	return merge(ctx, r, left, tip)
}

// Tip returns the commit of a target, which is a full ref. It is empty if the target does not exist.
func Tip(ctx context.Context, r *repo.Repo, target string) (string, error) {
	tip, err := r.Git().Ref(ctx, target)
	if errors.Is(err, ref.ErrNoRef) {
		return "", nil
	}
	return tip, err
}

// merge returns the files in which two commits conflict, sorted.
func merge(ctx context.Context, r *repo.Repo, left, right string) ([]string, error) {
	g := r.Git()
	drivers, err := g.Configured(ctx, `^merge\..*\.driver$`, false)
	if err != nil {
		return nil, fmt.Errorf("find the merge drivers: %w", err)
	}
	for _, d := range drivers {
		g.Settings = append(slices.Clone(g.Settings), git.Setting{Key: d.Key, Value: "exit 0"})
	}
	fields, err := g.Fields(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", left, right)
	if code := git.ExitCode(err); err != nil && code != 1 {
		return nil, fmt.Errorf("predict a merge: %w", err)
	}
	if err == nil || len(fields) < 2 {
		return nil, nil
	}
	files := slices.DeleteFunc(fields[1:], func(name string) bool { return name == "" || content.IsReserved(name) })
	slices.Sort(files)
	return slices.Compact(files), nil
}

// commitOf returns a commit of a snapshot's tree on the tip of the task's branch. The same snapshot always has the same commit.
func commitOf(ctx context.Context, r *repo.Repo, s snapshot.Snapshot) (string, error) {
	date := fmt.Sprintf("DATE=%d +0000", s.Time.Unix())
	return r.MakeCommit(ctx, s.Tree, "coven: predicted merge\n", []string{"GIT_AUTHOR_" + date, "GIT_COMMITTER_" + date}, s.Tip)
}

// overlap reports whether two changes can conflict: both change a path, one has a file where the other has a directory, or one adds
// a file to a directory from which the other removes some, which git may see as a rename of the directory.
func overlap(one, two []object.Change) bool {
	return touches(one, two) || touches(two, one)
}

func touches(one, two []object.Change) bool {
	paths, above, left := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range one {
		paths[c.Path] = true
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			above[dir] = true
			left[dir] = left[dir] || c.Status == 'D'
		}
	}
	return slices.ContainsFunc(two, func(c object.Change) bool {
		return paths[c.Path] || above[c.Path] || c.Status == 'A' && left[path.Dir(c.Path)]
	})
}
