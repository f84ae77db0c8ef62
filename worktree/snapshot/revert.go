package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// Revert restores the worktree to a snapshot of the session: modified, deleted and later created files,
// modes, and links. Files that were ignored at that time stay. A submodule gets its files back and counts
// as its commit at that time, but its HEAD does not move. Before that, Revert saves the worktree as a
// snapshot of the same session and returns it, so that the revert can be undone.
//
// With paths, Revert restores only these files and directories, which are relative to the worktree. The
// snapshot that it takes before has Only these paths, so that reverting to it also restores only these. The
// error is ErrNone for a number that does not exist in the session, and a *NoPathError for a path that is
// neither in the worktree nor in the snapshot.
func Revert(ctx context.Context, w *repo.Worktree, session string, n int, paths ...string) (before Snapshot, err error) {
	s, err := Find(ctx, w.Repo, session, n)
	if err != nil {
		return Snapshot{}, fmt.Errorf("revert %s: %w", w.TaskID, err)
	}
	return restorePaths(ctx, w, session, s.Commit, paths)
}

// A NoPathError means that there is nothing to restore at a path.
type NoPathError struct {
	Path string
	N    int      // of the snapshot
	Only []string // see Snapshot
}

func (e *NoPathError) Error() string {
	if e.Only != nil {
		return fmt.Sprintf("snapshot %d has only what a revert replaced, not %s", e.N, e.Path)
	}
	return fmt.Sprintf("neither the worktree nor snapshot %d has %s", e.N, e.Path)
}

// Restore is like Revert for any snapshot or commit.
func Restore(ctx context.Context, w *repo.Worktree, session, commitish string) (before Snapshot, err error) {
	return restorePaths(ctx, w, session, commitish, nil)
}

// restorePaths restores the given paths, or everything if paths is empty.
func restorePaths(ctx context.Context, w *repo.Worktree, session, commitish string, paths []string) (before Snapshot, err error) {
	l, err := w.Lock(ctx, "restore")
	if err != nil {
		return Snapshot{}, err
	}
	defer l.Release()
	before, err = restore(ctx, w, session, commitish, paths)
	if err != nil {
		return before, fmt.Errorf("restore %s to %s: %w", w.TaskID, commitish, w.OrMissing(err))
	}
	return before, nil
}

func restore(ctx context.Context, w *repo.Worktree, session, commitish string, paths []string) (Snapshot, error) {
	commit, err := w.Repo.Git().Commit(ctx, commitish)
	if err != nil {
		return Snapshot{}, err
	}
	if !isSnapshot(commit) {
		return restoreCommit(ctx, w, session, commit)
	}
	if paths, err = pathsOf(commit, paths); err != nil {
		return Snapshot{}, err
	}
	return restoreTree(ctx, w, session, commit, paths)
}

// pathsOf returns the paths to restore when reverting to a snapshot. An empty result means all paths.
func pathsOf(snapshot object.Commit, asked []string) ([]string, error) {
	s, err := parse(snapshot)
	if err != nil || s.Only == nil {
		return asked, err
	}
	for _, p := range asked {
		if !slices.Contains(s.Only, p) {
			return nil, &NoPathError{Path: p, N: s.N, Only: s.Only}
		}
	}
	if len(asked) > 0 {
		return asked, nil
	}
	return s.Only, nil
}

// restoreTree restores a snapshot, after staging all files.
func restoreTree(ctx context.Context, w *repo.Worktree, session string, commit object.Commit, paths []string) (Snapshot, error) {
	ix, now, err := content.OpenStaged(ctx, w, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.Drop()
	goal, now, err := goal(ctx, w, ix, now, commit, paths)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := saveTree(ctx, w, session, now, Snapshot{Note: "before going back to " + content.FirstLine(commit.Message), Only: paths})
	if err != nil {
		return before, err
	}
	failpoint.Point("restore.stored")
	show, err := content.ShowUnlikeBranch(ctx, w)
	if err != nil {
		return before, err
	}
	if err := ix.SwitchTo(ctx, now, goal, show); err != nil {
		return before, err
	}
	failpoint.Point("restore.switched")
	if err := restoreIgnored(ctx, w, ix, now, goal); err != nil {
		return before, err
	}
	if err := errors.Join(restoreSubmodules(ctx, w, commit, paths), content.RecordDeletedIn(ctx, w, goal)); err != nil {
		return before, err
	}
	failpoint.Point("restore.done")
	return before, ix.Keep()
}

// goal returns the tree to move to: that of a snapshot, or the current tree with the given paths of the
// snapshot. The move would overwrite some ignored files: goal adds them to the current tree, and returns
// the result as all.
func goal(ctx context.Context, w *repo.Worktree, ix *content.Index, now string, snapshot object.Commit, paths []string) (goal, all string, err error) {
	goal = snapshot.Tree
	if len(paths) > 0 {
		if goal, err = snapshotWithPaths(ctx, w, now, snapshot, paths); err != nil {
			return "", "", err
		}
	}
	blocked, err := content.Blocking(ctx, ix, now, goal)
	if err != nil || len(blocked) == 0 {
		return goal, now, err
	}
	if err := ix.Update(ctx, blocked); err != nil {
		return "", "", err
	}
	all, err = ix.WriteTree(ctx)
	return goal, all, err
}

// snapshotWithPaths returns a tree with the given paths of a snapshot.
func snapshotWithPaths(ctx context.Context, w *repo.Worktree, tree string, snapshot object.Commit, paths []string) (string, error) {
	g := w.Repo.Git()
	for _, path := range paths {
		have, err := g.Entries(ctx, tree, path)
		if err != nil {
			return "", err
		}
		want, err := g.Entries(ctx, snapshot.Tree, path)
		if err != nil {
			return "", err
		}
		if len(have)+len(want) == 0 {
			s, err := parse(snapshot)
			return "", errors.Join(err, &NoPathError{Path: path, N: s.N})
		}
	}
	return content.TreeWithPaths(ctx, w.Repo, tree, snapshot.Tree, paths)
}

// restoreIgnored restores files that the move removed but that the current ignore rules match: they
// existed as ignored files when the snapshot was taken.
func restoreIgnored(ctx context.Context, w *repo.Worktree, ix *content.Index, from, to string) error {
	changes, err := ix.Git.Changes(ctx, from, to)
	if err != nil {
		return err
	}
	removed := map[string]object.Entry{}
	var paths []string
	for _, change := range changes {
		files, err := content.InTheWay(w.Path, change.Path)
		if err != nil {
			return err
		}
		if change.Status == 'D' && len(files) == 0 {
			paths = append(paths, change.Path)
		}
	}
	ignored, err := content.IgnoredBy(ctx, ix.Git, paths)
	if err != nil || len(ignored) == 0 {
		return err
	}
	entries, err := ix.Git.Entries(ctx, from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		removed[e.Path] = e
	}
	var back []object.Entry
	for _, p := range ignored {
		back = append(back, removed[p])
	}
	return ix.CheckOutOnly(ctx, back)
}

// restoreCommit restores a commit. Its files were stored with the repository's conversions, which snapshots
// do not use.
func restoreCommit(ctx context.Context, w *repo.Worktree, session string, commit object.Commit) (Snapshot, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	ix, staged, err := content.StageOn(ctx, w, tip, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.Drop()
	blocked, err := content.Blocking(ctx, ix, staged, commit.Tree)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := snapshot(ctx, w, session, "before going back to "+commit.Oid, blocked)
	if err != nil {
		return before, err
	}
	// Reserved paths were staged as on the branch. Stage their actual content.
	if _, err := ix.Stage(ctx); err != nil {
		return before, err
	}
	if staged, err = ix.WriteTree(ctx); err != nil {
		return before, err
	}
	if err := ix.SwitchTo(ctx, staged, commit.Tree, content.ShowNone); err != nil {
		return before, err
	}
	if err := errors.Join(submodule.LeaveLinks(ctx, w, staged, commit.Tree), sparse.WriteOutside(w, sparse.Outside{})); err != nil {
		return before, err
	}
	return before, ix.Keep()
}
