package integrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// A Conflicted is an unfinished merge in W, for a resolver to finish.
type Conflicted struct {
	// Files lists all paths in conflict. A path may have no file: if both sides renamed a
	// file, the new names are also in conflict.
	Files []string `json:"files"`
	// Beside maps additional files, which must be removed to resolve the conflict, to the
	// paths that they are about: "logo.png~main" -> "logo.png".
	Beside    map[string]string `json:"beside"`
	Notes     []string          `json:"notes"`      // git's message about each conflict
	BranchTip string            `json:"branch_tip"` // the task's branch, which has not moved
	TargetTip string            `json:"target_tip"` // for CommitRequest.Merge
	Session   string            `json:"session"`
}

// MergeConflicted writes the conflicted merge of the task's branch and the
// target's current tip to W. Files without a conflict are merged; reserved paths are
// the target's. HEAD and the branch do not move; git in W shows the conflicts as
// unmerged paths.
//
//   - Text: conflict markers, labelled with the names of the two branches.
//   - What cannot have markers (binary files, symbolic links): the task's
//     version under its name, the target's beside it.
//   - Deleted on one side, changed on the other: the changed file.
//   - Renamed differently: the file under both names.
//   - A file where the other side has a directory, a file where it has a link:
//     one of the two beside the other.
//   - A submodule: nothing changes, *ConflictError. Editing files cannot resolve it.
//
// Commit with Merge set completes the merge: see UnresolvedError. W must be committed
// (*DirtyError). The caller must have taken a snapshot; after a kill it restores the
// snapshot and calls again. If there is no conflict anymore, Files is empty and nothing
// changes: use Integrate.
func MergeConflicted(ctx context.Context, w *repo.Worktree, target repo.Target, session string) (Conflicted, error) {
	l, err := w.Lock(ctx, "integrate")
	if err != nil {
		return Conflicted{}, err
	}
	defer l.Release()
	if err := Settle(ctx, w, l); err != nil {
		return Conflicted{}, err
	}
	c, err := conflict(ctx, w, target, session, l)
	if err != nil {
		return Conflicted{}, fmt.Errorf("integrate %s: %w", w.TaskID, w.OrMissing(err))
	}
	failpoint.Point("conflicted.return")
	return c, nil
}

func conflict(ctx context.Context, w *repo.Worktree, target repo.Target, session string, l *lock.Lock) (Conflicted, error) {
	theirs, err := w.Repo.Git().Ref(ctx, target.Ref)
	if err != nil {
		return Conflicted{}, err
	}
	tip, ix, err := CheckClean(ctx, w, l)
	if err != nil {
		return Conflicted{}, err
	}
	defer ix.Drop()
	target.Tip = theirs
	if err := related(ctx, w, tip.Oid, target); err != nil {
		return Conflicted{}, err
	}
	m, err := mergeLabelled(ctx, w, ix, tip.Oid, theirs, target.Branch)
	c := Conflicted{BranchTip: tip.Oid, TargetTip: theirs, Session: session}
	if err != nil || len(m.stages) == 0 {
		return c, err
	}
	if links := m.submodules(); len(links) > 0 {
		return c, &ConflictError{Target: target.Branch, Files: links}
	}
	c.Files, c.Notes = m.paths(), m.notes
	tree, err := settleBeside(ctx, w, m, &c)
	if err != nil {
		return c, err
	}
	if tree, err = content.WithReserved(ctx, w.Repo, tree, theirs); err != nil {
		return c, err
	}
	return c, putConflicted(context.WithoutCancel(ctx), w, ix, c, m, tip.Tree, tree)
}

// putConflicted records the conflicts, then moves W.
func putConflicted(ctx context.Context, w *repo.Worktree, ix *content.Index, c Conflicted, m labelledMerge, from, tree string) error {
	if err := w.Keep(ctx, names.KeepTarget, c.TargetTip); err != nil {
		return err
	}
	if err := file.WriteJSON(ConflictedPath(w), c); err != nil {
		return err
	}
	if err := keepOutside(ctx, w, c, tree); err != nil {
		return err
	}
	failpoint.Point("conflicted.recorded")
	inConflict := func(e git.Entry) bool { return slices.Contains(c.Files, e.Path) || c.Beside[e.Path] != "" }
	if err := carry(ctx, w, ix, from, tree, inConflict); err != nil {
		return err
	}
	failpoint.Point("conflicted.worktree")
	if err := publishUnmerged(ctx, ix, m.stages); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the index of %s: %w", w.Path, err)
	}
	return ix.Keep()
}

// ConflictedPath returns the file that describes the merge whose conflicts are in W.
func ConflictedPath(w *repo.Worktree) string { return w.StatePath("conflicted.json") }

// settleBeside returns the tree for W: the merged one, with both versions of files
// that cannot have markers.
func settleBeside(ctx context.Context, w *repo.Worktree, m labelledMerge, c *Conflicted) (string, error) {
	merged, err := content.EntriesByPath(ctx, w, m.tree)
	if err != nil {
		return "", err
	}
	ours, err := content.EntriesByPath(ctx, w, c.BranchTip)
	if err != nil {
		return "", err
	}
	theirs, err := content.EntriesByPath(ctx, w, c.TargetTip)
	if err != nil {
		return "", err
	}
	c.Beside = map[string]string{}
	var puts []git.Entry
	all := m.byPath()
	for _, p := range m.paths() {
		sides := all[p]
		entry, there := merged[p]
		switch {
		case there && ours[p] == (git.Entry{}) && theirs[p] == (git.Entry{}):
			c.Beside[p] = m.origin(p) // a name generated by git
		case there && sides[2].Mode != "" && sides[3].Mode != "" && entry.Oid == sides[2].Oid:
			name := beside(p, m.theirs, merged)
			merged[name] = git.Entry{}
			c.Beside[name] = p
			puts = append(puts, git.Entry{Mode: sides[3].Mode, Oid: sides[3].Oid, Path: name})
		}
	}
	return treeWith(ctx, w, m.tree, puts)
}

// treeWith returns a tree with some entries added.
func treeWith(ctx context.Context, w *repo.Worktree, tree string, entries []git.Entry) (string, error) {
	if len(entries) == 0 {
		return tree, nil
	}
	ix, err := content.Open(w, w.Git(), "none")
	if err != nil {
		return "", err
	}
	defer ix.Drop()
	if err := ix.Git.Run(ctx, "read-tree", tree); err != nil {
		return "", err
	}
	if err := ix.Put(ctx, entries); err != nil {
		return "", err
	}
	return ix.WriteTree(ctx)
}

// publishUnmerged gives W's own git an index in which the conflicts are unmerged
// paths. coven's index has the files as they are.
func publishUnmerged(ctx context.Context, ix *content.Index, stages []stage) error {
	apart := &content.Index{Worktree: ix.Worktree, Git: ix.Git, Dir: ix.Dir}
	apart.Git.Index = filepath.Join(ix.Dir, "unmerged")
	if err := os.Link(ix.Git.Index, apart.Git.Index); err != nil {
		return err
	}
	var gone []git.Entry
	var lines []string
	for _, s := range stages {
		gone = append(gone, git.Entry{Mode: "0", Path: s.path})
		lines = append(lines, fmt.Sprintf("%s %s %d\t%s", s.Mode, s.Oid, s.n, s.path))
	}
	if err := apart.Put(ctx, slices.Compact(gone)); err != nil {
		return err
	}
	if _, err := apart.Git.Feed(ctx, git.Join(lines), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	return apart.CopyTo(filepath.Join(ix.Worktree.Admin, "index"))
}

// keepOutside records that files outside of the cone count as merged, though W does not have them.
func keepOutside(ctx context.Context, w *repo.Worktree, c Conflicted, tree string) error {
	if w.Cone == nil {
		return nil
	}
	commit, err := w.Repo.MakeCommit(ctx, tree, "coven: conflicted merge\n", nil, c.TargetTip)
	if err != nil {
		return err
	}
	if err := w.Keep(ctx, names.KeepMerged, commit); err != nil {
		return err
	}
	return sparse.WriteOutside(w, sparse.Outside{Tip: c.BranchTip, Tree: commit})
}
