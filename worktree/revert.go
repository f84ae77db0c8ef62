package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Revert restores W to a snapshot of the session: changed, deleted and later created
// files, modes, links. Files that were ignored at that time stay; a submodule gets its
// files back and counts as the commit that it had, its HEAD stays. Before that, Revert
// saves W as a snapshot of the same session and returns it, so that the revert can be
// undone.
//
// With paths, it restores only these files and directories, which are relative to W, and a revert to the
// snapshot before, which has Only these, restores only these, too. The error is ErrNoSnapshot for a number that the session does not
// have, and a *NoPathError for a path that neither W nor the snapshot has.
func Revert(ctx context.Context, w *repo.Worktree, session string, n int, paths ...string) (before Snapshot, err error) {
	s, err := FindSnapshot(ctx, w.Repo, session, n)
	if err != nil {
		return Snapshot{}, fmt.Errorf("revert %s: %w", w.TaskID, err)
	}
	return goBack(ctx, w, session, s.Commit, paths)
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

// RestoreSnapshot is like Revert for any snapshot or commit.
func RestoreSnapshot(ctx context.Context, w *repo.Worktree, session, commitish string) (before Snapshot, err error) {
	return goBack(ctx, w, session, commitish, nil)
}

// goBack is Restore of some paths; none: of all.
func goBack(ctx context.Context, w *repo.Worktree, session, commitish string, paths []string) (before Snapshot, err error) {
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

// pathsOf returns the paths that a revert to a snapshot restores; none: all.
func pathsOf(snapshot git.Commit, asked []string) ([]string, error) {
	s, err := parseSnapshot(snapshot)
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

// restoreTree is restore to a snapshot with a look at all files.
func restoreTree(ctx context.Context, w *repo.Worktree, session string, commit git.Commit, paths []string) (Snapshot, error) {
	ix, now, err := stagedRaw(ctx, w, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.drop()
	goal, now, err := goal(ctx, w, ix, now, commit, paths)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := saveTree(ctx, w, session, now, Snapshot{Note: "before going back to " + firstLine(commit.Message), Only: paths})
	if err != nil {
		return before, err
	}
	failpoint.Point("restore.stored")
	show, err := unlikeBranch(ctx, w)
	if err != nil {
		return before, err
	}
	if err := ix.switchTo(ctx, now, goal, show); err != nil {
		return before, err
	}
	failpoint.Point("restore.switched")
	if err := giveBackIgnored(ctx, w, ix, now, goal); err != nil {
		return before, err
	}
	if err := errors.Join(leaveAsIn(ctx, w, commit, paths), noteGoneAsIn(ctx, w, goal)); err != nil {
		return before, err
	}
	failpoint.Point("restore.done")
	return before, ix.keep()
}

// goal returns the tree that W gets: that of a snapshot, or W's own with some paths of the
// snapshot. It adds the ignored files that this would write to W's own tree, and returns that, too.
func goal(ctx context.Context, w *repo.Worktree, ix *index, now string, snapshot git.Commit, paths []string) (goal, all string, err error) {
	goal = snapshot.Tree
	if len(paths) > 0 {
		if goal, err = snapshotWithPaths(ctx, w, now, snapshot, paths); err != nil {
			return "", "", err
		}
	}
	blocked, err := blocking(ctx, ix, now, goal)
	if err != nil || len(blocked) == 0 {
		return goal, now, err
	}
	if err := ix.take(ctx, blocked); err != nil {
		return "", "", err
	}
	all, err = ix.tree(ctx)
	return goal, all, err
}

// snapshotWithPaths returns a tree with some paths of a snapshot.
func snapshotWithPaths(ctx context.Context, w *repo.Worktree, tree string, snapshot git.Commit, paths []string) (string, error) {
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
			s, err := parseSnapshot(snapshot)
			return "", errors.Join(err, &NoPathError{Path: path, N: s.N})
		}
	}
	return treeWithPaths(ctx, w.Repo, tree, snapshot.Tree, paths)
}

// giveBackIgnored restores files that the move removed but that W's current ignore
// rules match: they existed then, ignored.
func giveBackIgnored(ctx context.Context, w *repo.Worktree, ix *index, from, to string) error {
	changes, err := ix.git.Changes(ctx, from, to)
	if err != nil {
		return err
	}
	removed := map[string]git.Entry{}
	var paths []string
	for _, change := range changes {
		files, err := inTheWay(w.Path, change.Path)
		if err != nil {
			return err
		}
		if change.Status == 'D' && len(files) == 0 {
			paths = append(paths, change.Path)
		}
	}
	ignored, err := ignoredBy(ctx, ix.git, paths)
	if err != nil || len(ignored) == 0 {
		return err
	}
	entries, err := ix.git.Entries(ctx, from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		removed[e.Path] = e
	}
	var back []git.Entry
	for _, p := range ignored {
		back = append(back, removed[p])
	}
	return ix.checkOutOnly(ctx, back)
}

// checkOutOnly writes the files of entries without keeping the entries.
func (ix *index) checkOutOnly(ctx context.Context, entries []git.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	g := ix.git
	g.Index = filepath.Join(ix.dir, "apart")
	apart := &index{w: ix.w, git: g, dir: ix.dir}
	if err := apart.put(ctx, entries); err != nil {
		return err
	}
	err := apart.git.Run(ctx, "checkout-index", "--all", "--quiet")
	if removeErr := os.Remove(g.Index); err == nil {
		err = removeErr
	}
	return err
}

// restoreCommit goes back to a commit whose files were made with the
// repository's conversions, which snapshots do not use.
func restoreCommit(ctx context.Context, w *repo.Worktree, session string, commit git.Commit) (Snapshot, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	ix, staged, err := stagedOn(ctx, w, tip, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.drop()
	blocked, err := blocking(ctx, ix, staged, commit.Tree)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := snapshot(ctx, w, session, "before going back to "+commit.Oid, blocked)
	if err != nil {
		return before, err
	}
	// Reserved paths were staged as in the branch: stage their actual content.
	if _, err := ix.stage(ctx); err != nil {
		return before, err
	}
	if staged, err = ix.tree(ctx); err != nil {
		return before, err
	}
	if err := ix.switchTo(ctx, staged, commit.Tree, noneShown); err != nil {
		return before, err
	}
	if err := errors.Join(leaveLinks(ctx, w, staged, commit.Tree), putOutside(w, outsideRecord{})); err != nil {
		return before, err
	}
	return before, ix.keep()
}
