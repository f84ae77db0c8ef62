package integrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// A Conflicted is an unfinished merge in a worktree, for a resolver to finish.
type Conflicted struct {
	// Files lists all paths in conflict. A path may have no file: if both sides renamed a file, the new
	// names are also in conflict.
	Files []string `json:"files"`
	// Beside maps additional files to the paths whose other version they contain: "logo.png~main" ->
	// "logo.png". They must be removed to resolve the conflict.
	Beside    map[string]string `json:"beside"`
	Notes     []string          `json:"notes"`      // git's message about each conflict
	BranchTip string            `json:"branch_tip"` // the tip of the task's branch, which has not moved
	TargetTip string            `json:"target_tip"` // for commit.Request.Merge
	Session   string            `json:"session"`
	Dropped   string            `json:"dropped,omitempty"` // see Landing
}

// MergeConflicted writes the conflicted merge of the task's branch and the target's current tip to the
// worktree. Files without a conflict are merged; reserved paths are the target's. HEAD and the branch do
// not move; git in the worktree shows the conflicts as unmerged paths.
//
//   - Text: conflict markers, labelled with the names of the two branches.
//   - Files without markers (binary files, symbolic links): the task's version under
//     its name, and the target's version under an additional name.
//   - Deleted on one side, changed on the other: the changed file.
//   - Renamed differently: the file under both names.
//   - A file on one side and a directory or link on the other: one of the two under an
//     additional name.
//   - A submodule: nothing changes, and the error is a *ConflictError, because editing
//     files cannot resolve the conflict.
//
// A commit with Merge set completes the merge: see UnresolvedError. All work in the worktree must be
// committed (*DirtyError). The caller must have taken a snapshot; after a kill it restores the snapshot and
// calls MergeConflicted again. If there is no longer a conflict, Files is empty and nothing changes: use
// Merge.
func MergeConflicted(ctx context.Context, w *repo.Worktree, target repo.Target, session string) (Conflicted, error) {
	l, err := w.Lock(ctx, "integrate")
	if err != nil {
		return Conflicted{}, err
	}
	defer l.Release()
	if err := FinishInterrupted(ctx, w, l); err != nil {
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
	start, err := startOf(ctx, w, tip.Oid, target)
	if err != nil {
		return Conflicted{}, err
	}
	m, err := mergeLabelled(ctx, w, ix, start, tip.Oid, target)
	c := Conflicted{BranchTip: tip.Oid, TargetTip: theirs, Session: session}
	if err != nil || len(m.stages) == 0 {
		return c, err
	}
	if start.Dropped {
		if c.Dropped, err = dropped(ctx, w, start.Commit, theirs); err != nil {
			return c, err
		}
	}
	if links := m.submodules(); len(links) > 0 {
		return c, &ConflictError{Target: target.Branch, Files: links}
	}
	c.Files, c.Notes = m.paths(), m.notes
	tree, err := addOtherVersions(ctx, w, m, &c)
	if err != nil {
		return c, err
	}
	if tree, err = content.WithReserved(ctx, w.Repo, tree, theirs); err != nil {
		return c, err
	}
	return c, putConflicted(context.WithoutCancel(ctx), w, ix, c, m, tip.Tree, tree)
}

// putConflicted records the conflicts, then moves the files.
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
	inConflict := func(e object.Entry) bool { return slices.Contains(c.Files, e.Path) || c.Beside[e.Path] != "" }
	if err := moveFiles(ctx, w, ix, from, tree, inConflict); err != nil {
		return err
	}
	failpoint.Point("conflicted.worktree")
	if err := publishUnmerged(ctx, ix, m.stages); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the index of %s: %w", w.Path, err)
	}
	return ix.Keep()
}

// ConflictedPath returns the path of the file that describes the conflicted merge in the worktree.
func ConflictedPath(w *repo.Worktree) string { return w.StatePath("conflicted.json") }

// addOtherVersions returns the tree for the worktree: the merged tree, plus the target's version of files that
// cannot have conflict markers.
func addOtherVersions(ctx context.Context, w *repo.Worktree, m labelledMerge, c *Conflicted) (string, error) {
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
	var puts []object.Entry
	all := m.byPath()
	for _, p := range m.paths() {
		sides := all[p]
		entry, there := merged[p]
		switch {
		case there && ours[p] == (object.Entry{}) && theirs[p] == (object.Entry{}):
			c.Beside[p] = m.origin(p) // a name generated by git
		case there && sides[2].Mode != "" && sides[3].Mode != "" && entry.Oid == sides[2].Oid:
			name := beside(p, m.theirs, merged)
			merged[name] = object.Entry{}
			c.Beside[name] = p
			puts = append(puts, object.Entry{Mode: sides[3].Mode, Oid: sides[3].Oid, Path: name})
		}
	}
	if len(puts) == 0 {
		return m.tree, nil
	}
	return content.EditTree(ctx, w, w.Git(), m.tree, puts)
}

// publishUnmerged gives the worktree's git an index in which the conflicts are unmerged paths. coven's own
// index contains the files without stages.
func publishUnmerged(ctx context.Context, ix *content.Index, stages []stage) error {
	apart := &content.Index{Worktree: ix.Worktree, Git: ix.Git, Dir: ix.Dir}
	apart.Git.Index = filepath.Join(ix.Dir, "unmerged")
	if err := os.Link(ix.Git.Index, apart.Git.Index); err != nil {
		return err
	}
	var gone []object.Entry
	var lines []string
	for _, s := range stages {
		gone = append(gone, object.Entry{Mode: "0", Path: s.path})
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

// keepOutside records that files outside the cone count as merged, although they are not in the worktree.
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
