package content

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// Outside returns the index entries outside the cone: the entries that are skipped, and the paths of
// entries whose files are, or were, in the worktree.
func (ix *Index) Outside(ctx context.Context) (skipped []object.Entry, visible map[string]bool, err error) {
	visible = map[string]bool{}
	if !file.Exists(ix.Git.Index) {
		return nil, visible, nil
	}
	fields, err := ix.Git.Fields(ctx, "ls-files", "-z", "-t", "-s", "-c")
	if err != nil {
		return nil, nil, err
	}
	var l Listing
	for _, field := range fields {
		if err := l.add(field); err != nil {
			return nil, nil, err
		}
	}
	skips := map[string]bool{}
	for _, e := range l.skipped {
		skips[e.Path] = true
	}
	for _, p := range l.entries {
		if !skips[p] && ix.Worktree.Cone.Skips(p) {
			visible[p] = true
		}
	}
	return l.skipped, visible, nil
}

// mark sets or clears the skip-worktree bit of entries.
func (ix *Index) mark(ctx context.Context, option string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := ix.Git.Feed(ctx, git.Join(paths), "update-index", "-z", option, "--stdin")
	return err
}

const (
	skipOption   = "--skip-worktree"
	unskipOption = "--no-skip-worktree"
)

// skip adds entries whose files are not in the worktree.
func (ix *Index) skip(ctx context.Context, entries []object.Entry) error {
	if err := ix.Put(ctx, entries); err != nil {
		return err
	}
	return ix.mark(ctx, skipOption, paths(entries))
}

// deleting returns edits that remove the entries.
func deleting(entries []object.Entry) []object.Entry {
	var edits []object.Entry
	for _, e := range entries {
		edits = append(edits, object.Entry{Mode: "0", Path: e.Path})
	}
	return edits
}

func paths(entries []object.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Path)
	}
	return names
}

// A Show reports whether a file outside the cone is checked out nevertheless.
type Show func(object.Entry) bool

// ShowNone is a Show for worktrees that have only the files of their cone.
func ShowNone(object.Entry) bool { return false }

// ShowUnlikeBranch returns a Show for files that differ from the branch, and for files that are, or were,
// in the worktree.
func ShowUnlikeBranch(ctx context.Context, w *repo.Worktree) (Show, error) {
	if w.Cone == nil {
		return ShowNone, nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	known, err := knownOutside(ctx, w, tip)
	if err != nil {
		return nil, err
	}
	has, err := EntriesByPath(ctx, w, tip)
	return func(e object.Entry) bool { return has[e.Path] != e || known[e.Path] }, err
}

// skippedOf returns the entries of a tree that are not checked out: those outside the cone, except entries
// that are visible in the index, that exist in the worktree, or that show selects.
func skippedOf(ctx context.Context, w *repo.Worktree, tree string, visible map[string]bool, show Show) ([]object.Entry, error) {
	entries, err := w.Repo.Git().Entries(ctx, tree)
	there := sparse.PresenceOf(w)
	return slices.DeleteFunc(entries, func(e object.Entry) bool {
		return !w.Cone.Skips(e.Path) || visible[e.Path] || there.Has(e.Path) || show(e)
	}), err
}

// treeWithout returns a tree without the given entries.
func treeWithout(ctx context.Context, w *repo.Worktree, tree string, entries []object.Entry) (string, error) {
	return EditTree(ctx, w, w.Git(), tree, deleting(entries))
}

// CheckOut reads a tree into the index and writes its files.
func (ix *Index) CheckOut(ctx context.Context, tree string, show Show) error {
	if ix.Worktree.Cone == nil {
		return ix.Git.Run(ctx, "read-tree", "--reset", "-u", tree)
	}
	skipped, err := skippedOf(ctx, ix.Worktree, tree, nil, show)
	if err != nil {
		return err
	}
	visible, err := treeWithout(ctx, ix.Worktree, tree, skipped)
	if err != nil {
		return err
	}
	if err := ix.Git.Run(ctx, "read-tree", "--reset", "-u", visible); err != nil {
		return err
	}
	return ix.skip(ctx, skipped)
}

// Read reads the branch into the index for commits, without writing files. Missing files outside the cone
// get the entries that sparse.ReadOutside returns.
func (ix *Index) Read(ctx context.Context, tip string) error {
	if ix.Worktree.Cone == nil {
		return ix.Git.Run(ctx, "read-tree", "--reset", tip)
	}
	counts, err := sparse.ReadOutside(ix.Worktree, tip)
	if err != nil {
		return err
	}
	_, visible, err := ix.Outside(ctx)
	if err != nil {
		return err
	}
	for _, p := range counts.Gone {
		visible[p] = true
	}
	if err := ix.Git.Run(ctx, "read-tree", "--reset", tip); err != nil {
		return err
	}
	has, err := skippedOf(ctx, ix.Worktree, tip, visible, ShowNone)
	if err != nil {
		return err
	}
	wants, err := skippedOf(ctx, ix.Worktree, counts.Tree, visible, ShowNone)
	if err != nil {
		return err
	}
	if err := errors.Join(ix.Put(ctx, replacing(has, wants)), ix.mark(ctx, skipOption, paths(wants))); err != nil || len(counts.Gone) == 0 {
		return err
	}
	gone, err := ix.Worktree.Repo.Git().Entries(ctx, tip, counts.Gone...)
	if err != nil {
		return err
	}
	return ix.mark(ctx, unskipOption, paths(gone)) // git preserves the bits of unchanged entries
}

// recordDeleted records the files outside the cone that were in the worktree, but have been deleted. l is the
// listing with which the worktree was staged.
func recordDeleted(w *repo.Worktree, tip string, l Listing) error {
	if w.Cone == nil {
		return nil
	}
	rec, err := sparse.ReadOutside(w, tip)
	if err != nil {
		return err
	}
	there := sparse.PresenceOf(w)
	gone := slices.DeleteFunc(slices.Clone(l.Stale), func(p string) bool { return !w.Cone.Skips(p) || there.Has(p) })
	slices.Sort(gone)
	if gone = slices.Compact(gone); slices.Equal(gone, rec.Gone) {
		return nil
	}
	rec.Gone = gone
	return sparse.WriteOutside(w, rec)
}

// RecordDeletedIn records the files outside the cone that are on the branch, but not in tree. The worktree is
// about to be moved to tree, a snapshot.
func RecordDeletedIn(ctx context.Context, w *repo.Worktree, tree string) error {
	if w.Cone == nil {
		return nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	has, err := EntriesByPath(ctx, w, tree)
	if err != nil {
		return err
	}
	var rec sparse.Outside
	entries, err := w.Repo.Git().Entries(ctx, tip)
	for _, e := range entries {
		if w.Cone.Skips(e.Path) && has[e.Path].Path == "" && e.Mode != object.ModeSubmodule {
			rec.Gone = append(rec.Gone, e.Path)
		}
	}
	return errors.Join(err, sparse.WriteOutside(w, rec))
}

// Move is git's two-way merge of the worktree from one tree, which is in the index, to another.
func (ix *Index) Move(ctx context.Context, from, to string, show Show) error {
	if ix.Worktree.Cone == nil {
		return ix.limited().Run(ctx, "read-tree", "-m", "-u", from, to)
	}
	before, visible, err := ix.Outside(ctx)
	if err != nil {
		return err
	}
	after, err := skippedOf(ctx, ix.Worktree, to, visible, show)
	if err != nil {
		return err
	}
	if err := ix.Put(ctx, deleting(before)); err != nil {
		return err
	}
	if from, err = ix.WriteTree(ctx); err != nil {
		return err
	}
	if to, err = treeWithout(ctx, ix.Worktree, to, after); err != nil {
		return err
	}
	if err := ix.limited().Run(ctx, "read-tree", "-m", "-u", from, to); err != nil {
		return err
	}
	return ix.skip(ctx, after)
}

// limited returns a git that can change only the files of the worktree and of the index, and those of common filters.
func (ix *Index) limited() git.Repo {
	g := ix.Git
	g.Write = []string{ix.Worktree.Path, ix.Dir}
	dir := ix.Worktree.Repo.GitDir
	g.Env = append(slices.Clip(g.Env), "TMPDIR="+ix.Dir)
	others := []string{ix.Worktree.Repo.LFS, filepath.Join(dir, "annex")}
	if promised, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.promisor")); err == nil && len(promised) > 0 {
		others = append(others, filepath.Join(dir, "objects")) // git fetches missing objects
	}
	for _, other := range others {
		if info, err := os.Stat(other); err == nil && info.IsDir() {
			g.Write = append(g.Write, other)
		}
	}
	return g
}

// knownOutside returns the known paths outside the cone that are, or were, in the worktree.
func knownOutside(ctx context.Context, w *repo.Worktree, tip string) (map[string]bool, error) {
	ix, err := Open(w, w.Git(), CommitIndex)
	if err != nil {
		return nil, err
	}
	defer ix.Drop()
	_, known, err := ix.Outside(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := sparse.ReadOutside(w, tip)
	for _, p := range rec.Gone {
		known[p] = true
	}
	return known, err
}

// skipAsIn gives the snapshot index entries for the files outside the cone that are not in the worktree,
// and reports whether that changed the index. Files that the task has deleted get no entry.
func (ix *Index) skipAsIn(ctx context.Context, tip string, l Listing) (bool, error) {
	if ix.Worktree.Cone == nil || tip == "" {
		return false, nil
	}
	known, err := knownOutside(ctx, ix.Worktree, tip)
	if err != nil {
		return false, err
	}
	counts, err := sparse.ReadOutside(ix.Worktree, tip)
	if err != nil {
		return false, err
	}
	want, err := skippedOf(ctx, ix.Worktree, counts.Tree, known, ShowNone)
	if err != nil {
		return false, err
	}
	vivid := map[string]bool{}
	for _, p := range l.skippedButPresent {
		vivid[p] = true
	}
	have := slices.DeleteFunc(slices.Clone(l.skipped), func(e object.Entry) bool { return vivid[e.Path] })
	edits := replacing(have, want)
	if err := ix.Put(ctx, edits); err != nil || len(edits) == 0 {
		return false, err
	}
	return true, ix.mark(ctx, skipOption, paths(slices.DeleteFunc(edits, func(e object.Entry) bool { return e.Mode == "0" })))
}
