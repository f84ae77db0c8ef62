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
)

// Revert restores W to a snapshot of the session: changed, deleted and later created
// files, modes, links. Files that were ignored at that time stay; a submodule gets its
// files back and counts as the commit that it had, its HEAD stays. Before that, Revert
// saves W as a snapshot of the same session and returns it, so that the revert can be
// undone.
//
// With paths, it restores only these files and directories, which are relative to W. If each is a
// file that is stored as it is, Revert looks at no other, and the snapshot before has Only these: a
// revert to it restores these. The error is ErrNoSnapshot for a number that the session does not
// have, and a *NoPathError for a path that neither W nor the snapshot has.
func (w *Worktree) Revert(ctx context.Context, session string, n int, paths ...string) (before Snapshot, err error) {
	s, err := w.repo.FindSnapshot(ctx, session, n)
	if err != nil {
		return Snapshot{}, fmt.Errorf("revert %s: %w", w.TaskID, err)
	}
	return w.goBack(ctx, session, s.Commit, paths)
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
func (w *Worktree) Restore(ctx context.Context, session, commitish string) (before Snapshot, err error) {
	return w.goBack(ctx, session, commitish, nil)
}

// goBack is Restore of some paths; none: of all.
func (w *Worktree) goBack(ctx context.Context, session, commitish string, paths []string) (before Snapshot, err error) {
	l, err := w.lock(ctx, "restore")
	if err != nil {
		return Snapshot{}, err
	}
	defer l.Release()
	before, err = w.restore(ctx, session, commitish, paths)
	if err != nil {
		return before, fmt.Errorf("restore %s to %s: %w", w.TaskID, commitish, w.orGone(err))
	}
	return before, nil
}

func (w *Worktree) restore(ctx context.Context, session, commitish string, paths []string) (Snapshot, error) {
	commit, err := w.repo.git().Commit(ctx, commitish)
	if err != nil {
		return Snapshot{}, err
	}
	if !isSnapshot(commit) {
		return w.restoreCommit(ctx, session, commit)
	}
	if paths, err = pathsOf(commit, paths); err != nil {
		return Snapshot{}, err
	}
	if len(paths) > 0 {
		before, err := w.restoreAlone(ctx, session, commit, paths)
		if _, busy := errors.AsType[*BusyError](err); err == nil || busy {
			return before, err
		}
	}
	return w.restoreTree(ctx, session, commit, paths)
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
func (w *Worktree) restoreTree(ctx context.Context, session string, commit git.Commit, paths []string) (Snapshot, error) {
	ix, now, err := w.stagedRaw(ctx, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.drop()
	goal, now, err := w.goal(ctx, ix, now, commit, paths)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := w.saveTree(ctx, session, "before going back to "+firstLine(commit.Message), now)
	if err != nil {
		return before, err
	}
	failpoint.Point("restore.stored")
	show, err := w.unlikeBranch(ctx)
	if err != nil {
		return before, err
	}
	if err := ix.switchTo(ctx, now, goal, show); err != nil {
		return before, err
	}
	failpoint.Point("restore.switched")
	if err := w.giveBackIgnored(ctx, ix, now, goal); err != nil {
		return before, err
	}
	if err := errors.Join(w.leaveAsIn(ctx, commit, paths), w.noteGoneAsIn(ctx, goal)); err != nil {
		return before, err
	}
	failpoint.Point("restore.done")
	return before, ix.keep()
}

// goal returns the tree that W gets: that of a snapshot, or W's own with some paths of the
// snapshot. It adds the ignored files that this would write to W's own tree, and returns that, too.
func (w *Worktree) goal(ctx context.Context, ix *index, now string, snapshot git.Commit, paths []string) (goal, all string, err error) {
	goal = snapshot.Tree
	if len(paths) > 0 {
		if goal, err = w.withPaths(ctx, now, snapshot, paths); err != nil {
			return "", "", err
		}
	}
	blocked, err := w.blocking(ctx, ix, now, goal)
	if err != nil || len(blocked) == 0 {
		return goal, now, err
	}
	if err := ix.take(ctx, blocked); err != nil {
		return "", "", err
	}
	all, err = ix.tree(ctx)
	return goal, all, err
}

// withPaths returns a tree with some paths of a snapshot.
func (w *Worktree) withPaths(ctx context.Context, tree string, snapshot git.Commit, paths []string) (string, error) {
	g := w.repo.git()
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
	return w.repo.withPaths(ctx, tree, snapshot.Tree, paths)
}

// giveBackIgnored restores files that the move removed but that W's current ignore
// rules match: they existed then, ignored.
func (w *Worktree) giveBackIgnored(ctx context.Context, ix *index, from, to string) error {
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
func (w *Worktree) restoreCommit(ctx context.Context, session string, commit git.Commit) (Snapshot, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	ix, staged, err := w.stagedOn(ctx, tip, nil)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.drop()
	blocked, err := w.blocking(ctx, ix, staged, commit.Tree)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := w.snapshot(ctx, session, "before going back to "+commit.Oid, blocked)
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
	if err := errors.Join(w.leave(ctx, staged, commit.Tree), w.putOutside(outsideRecord{})); err != nil {
		return before, err
	}
	return before, ix.keep()
}
