package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A sparse W has the files of a cone only. The indexes of coven have all entries of the branch,
// as W's own index has: those of files that are not in W have git's skip-worktree bit and count as
// unchanged. git never decides which these are, with core.sparseCheckout it would remove files
// outside of the cone that the task has made. Instead, coven takes such entries out of an index
// before git moves W, and puts those of the new tree back.

// newCone returns the cone of a new worktree; nil: it has all files.
func newCone(ctx context.Context, r *repo.Repo) (*repo.Cone, error) {
	if r.Sparse.Dirs != nil {
		return &repo.Cone{Dirs: r.Sparse.Dirs}, nil
	}
	if !r.Sparse.Main {
		return nil, nil
	}
	main := r.RootGit()
	settings, err := main.Configured(ctx, `^core\.sparsecheckout(cone)?$`, false)
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, s := range settings {
		on[strings.ToLower(s.Key)] = strings.EqualFold(s.Value, "true")
	}
	if !on["core.sparsecheckout"] {
		return nil, nil
	}
	if !on["core.sparsecheckoutcone"] {
		return nil, errors.New("the main checkout is sparse, but not in git's cone mode: set worktree.sparse")
	}
	text, err := file.ReadIfExists(filepath.Join(main.Dir, "info", "sparse-checkout"))
	if err != nil {
		return nil, err
	}
	return repo.ParseCone(text)
}

// putCone lets W's own git know the cone, if the configuration of the repository allows worktrees
// their own; see settleConfig for that of an isolated W. Otherwise it knows the entries of W's
// index, as far as it does not write new ones.
func putCone(ctx context.Context, w *repo.Worktree) error {
	if w.Cone == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(w.Admin, "info"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Admin, "info", "sparse-checkout"), []byte(w.Cone.Patterns()), 0o644); err != nil {
		return err
	}
	for _, key := range []string{"core.sparseCheckout", "core.sparseCheckoutCone"} {
		if err := w.Repo.Git().Run(ctx, "config", "--file", filepath.Join(w.Admin, "config.worktree"), key, "true"); err != nil {
			return err
		}
	}
	return nil
}

// presence looks for files in W, with one look for all in a directory that does not exist.
type presence struct {
	top  string
	dirs map[string]bool
}

func presenceOf(w *repo.Worktree) presence {
	return presence{top: w.Path, dirs: map[string]bool{".": true}}
}

// has reports whether anything is at a path. What is behind a symbolic link is not.
func (p presence) has(name string) bool {
	return p.hasDir(path.Dir(name)) && file.Exists(filepath.Join(p.top, name))
}

func (p presence) hasDir(dir string) bool {
	there, known := p.dirs[dir]
	if known {
		return there
	}
	if p.hasDir(path.Dir(dir)) {
		info, err := os.Lstat(filepath.Join(p.top, dir))
		there = err == nil && info.IsDir()
	}
	p.dirs[dir] = there
	return there
}

// presentPaths returns the paths of the entries that are in W.
func presentPaths(w *repo.Worktree, entries []git.Entry) []string {
	var paths []string
	there := presenceOf(w)
	for _, e := range entries {
		if there.has(e.Path) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// outside returns the entries of an index outside of the cone: those that are skipped, and the
// paths of those that W has, or had.
func (ix *index) outside(ctx context.Context) (skipped []git.Entry, visible map[string]bool, err error) {
	visible = map[string]bool{}
	if !file.Exists(ix.git.Index) {
		return nil, visible, nil
	}
	fields, err := ix.git.Fields(ctx, "ls-files", "-z", "-t", "-s", "-c")
	if err != nil {
		return nil, nil, err
	}
	var l listing
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
		if !skips[p] && ix.w.Cone.Skips(p) {
			visible[p] = true
		}
	}
	return l.skipped, visible, nil
}

// mark sets or removes the bits of entries.
func (ix *index) mark(ctx context.Context, option string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := ix.git.Feed(ctx, git.Join(paths), "update-index", "-z", option, "--stdin")
	return err
}

const (
	skipOption   = "--skip-worktree"
	unskipOption = "--no-skip-worktree"
)

// skip adds entries that W does not have.
func (ix *index) skip(ctx context.Context, entries []git.Entry) error {
	if err := ix.put(ctx, entries); err != nil {
		return err
	}
	return ix.mark(ctx, skipOption, paths(entries))
}

// without removes entries from the index, and returns the tree of the others.
func (ix *index) without(ctx context.Context, entries []git.Entry) (tree string, err error) {
	if err := ix.put(ctx, deleting(entries)); err != nil {
		return "", err
	}
	return ix.tree(ctx)
}

// deleting returns edits that remove entries.
func deleting(entries []git.Entry) []git.Entry {
	var edits []git.Entry
	for _, e := range entries {
		edits = append(edits, git.Entry{Mode: "0", Path: e.Path})
	}
	return edits
}

func paths(entries []git.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Path)
	}
	return names
}

// A shown reports whether W gets a file although it is outside of the cone.
type shown func(git.Entry) bool

func noneShown(git.Entry) bool { return false }

// unlikeBranch shows what differs from the branch, and what W has or had.
func unlikeBranch(ctx context.Context, w *repo.Worktree) (shown, error) {
	if w.Cone == nil {
		return noneShown, nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	known, err := knownOutside(ctx, w, tip)
	if err != nil {
		return nil, err
	}
	has, err := entriesByPath(ctx, w, tip)
	return func(e git.Entry) bool { return has[e.Path] != e || known[e.Path] }, err
}

// skippedOf returns the entries of a tree that W does not have after it moved there: those outside
// of the cone, unless the index has them visible, W has something there, or they are shown.
func skippedOf(ctx context.Context, w *repo.Worktree, tree string, visible map[string]bool, show shown) ([]git.Entry, error) {
	entries, err := w.Repo.Git().Entries(ctx, tree)
	there := presenceOf(w)
	return slices.DeleteFunc(entries, func(e git.Entry) bool {
		return !w.Cone.Skips(e.Path) || visible[e.Path] || there.has(e.Path) || show(e)
	}), err
}

// treeWithout returns a tree without some of its entries.
func treeWithout(ctx context.Context, w *repo.Worktree, tree string, entries []git.Entry) (string, error) {
	ix, err := openIndex(w, w.Git(), "none")
	if err != nil {
		return "", err
	}
	defer ix.drop()
	if err := ix.git.Run(ctx, "read-tree", tree); err != nil {
		return "", err
	}
	return ix.without(ctx, entries)
}

// checkOut reads a tree into the index and writes its files.
func (ix *index) checkOut(ctx context.Context, tree string, show shown) error {
	if ix.w.Cone == nil {
		return ix.git.Run(ctx, "read-tree", "--reset", "-u", tree)
	}
	skipped, err := skippedOf(ctx, ix.w, tree, nil, show)
	if err != nil {
		return err
	}
	visible, err := treeWithout(ctx, ix.w, tree, skipped)
	if err != nil {
		return err
	}
	if err := ix.git.Run(ctx, "read-tree", "--reset", "-u", visible); err != nil {
		return err
	}
	return ix.skip(ctx, skipped)
}

// read reads the branch into the index for commits, without the files. What is not in W outside of
// the cone counts as the record says.
func (ix *index) read(ctx context.Context, tip string) error {
	if ix.w.Cone == nil {
		return ix.git.Run(ctx, "read-tree", "--reset", tip)
	}
	counts, err := readOutside(ix.w, tip)
	if err != nil {
		return err
	}
	_, visible, err := ix.outside(ctx)
	if err != nil {
		return err
	}
	for _, p := range counts.Gone {
		visible[p] = true
	}
	if err := ix.git.Run(ctx, "read-tree", "--reset", tip); err != nil {
		return err
	}
	has, err := skippedOf(ctx, ix.w, tip, visible, noneShown)
	if err != nil {
		return err
	}
	wants, err := skippedOf(ctx, ix.w, counts.Tree, visible, noneShown)
	if err != nil {
		return err
	}
	if err := errors.Join(ix.put(ctx, replacing(has, wants)), ix.mark(ctx, skipOption, paths(wants))); err != nil || len(counts.Gone) == 0 {
		return err
	}
	gone, err := ix.w.Repo.Git().Entries(ctx, tip, counts.Gone...)
	if err != nil {
		return err
	}
	return ix.mark(ctx, unskipOption, paths(gone)) // git keeps the bits of entries that stay
}

// outsideRecord is outside.json: as what files outside of the cone count that are not in W.
type outsideRecord struct {
	Tip  string   `json:"tip,omitempty"`  // of the branch
	Tree string   `json:"tree,omitempty"` // a commit that has these files while the branch is at Tip: a merge in W
	Gone []string `json:"gone,omitempty"` // they count as deleted: W had them
}

func outsidePath(w *repo.Worktree) string { return w.StatePath("outside.json") }

// readOutside reads the record for a tip of the branch. Tree is that of the tip if no merge is in
// progress.
func readOutside(w *repo.Worktree, tip string) (outsideRecord, error) {
	var rec outsideRecord
	err := file.ReadJSON(outsidePath(w), &rec)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	if rec.Tip != tip || rec.Tree == "" {
		rec.Tip, rec.Tree = tip, tip
	}
	return rec, nil
}

// outsideText returns the record as it is in its file.
func outsideText(w *repo.Worktree) string {
	if w.Cone == nil {
		return ""
	}
	raw, _ := os.ReadFile(outsidePath(w)) // without the file, it is empty
	return string(raw)
}

// putOutside writes the record of a sparse W.
func putOutside(w *repo.Worktree, rec outsideRecord) error {
	if w.Cone == nil {
		return nil
	}
	if rec.Tree == rec.Tip {
		rec.Tip, rec.Tree = "", ""
	}
	if rec.Tree == "" && len(rec.Gone) == 0 {
		err := os.Remove(outsidePath(w))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return file.WriteJSON(outsidePath(w), rec)
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
	if err := w.Keep(ctx, repo.KeepMerged, commit); err != nil {
		return err
	}
	return putOutside(w, outsideRecord{Tip: c.BranchTip, Tree: commit})
}

// noteGone records the files outside of the cone that W had, and has no more. W was staged with
// this listing.
func noteGone(w *repo.Worktree, tip string, l listing) error {
	if w.Cone == nil {
		return nil
	}
	rec, err := readOutside(w, tip)
	if err != nil {
		return err
	}
	there := presenceOf(w)
	gone := slices.DeleteFunc(slices.Clone(l.stale), func(p string) bool { return !w.Cone.Skips(p) || there.has(p) })
	slices.Sort(gone)
	if gone = slices.Compact(gone); slices.Equal(gone, rec.Gone) {
		return nil
	}
	rec.Gone = gone
	return putOutside(w, rec)
}

// noteGoneAsIn records the files outside of the cone that the branch has and a snapshot has not, to
// which W was moved.
func noteGoneAsIn(ctx context.Context, w *repo.Worktree, tree string) error {
	if w.Cone == nil {
		return nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	has, err := entriesByPath(ctx, w, tree)
	if err != nil {
		return err
	}
	var rec outsideRecord
	entries, err := w.Repo.Git().Entries(ctx, tip)
	for _, e := range entries {
		if w.Cone.Skips(e.Path) && has[e.Path].Path == "" && e.Mode != git.ModeSubmodule {
			rec.Gone = append(rec.Gone, e.Path)
		}
	}
	return errors.Join(err, putOutside(w, rec))
}

// move is git's two-way merge of W from one tree, which is in the index, to another.
func (ix *index) move(ctx context.Context, from, to string, show shown) error {
	if ix.w.Cone == nil {
		return ix.git.Run(ctx, "read-tree", "-m", "-u", from, to)
	}
	before, visible, err := ix.outside(ctx)
	if err != nil {
		return err
	}
	after, err := skippedOf(ctx, ix.w, to, visible, show)
	if err != nil {
		return err
	}
	if from, err = ix.without(ctx, before); err != nil {
		return err
	}
	if to, err = treeWithout(ctx, ix.w, to, after); err != nil {
		return err
	}
	if err := ix.git.Run(ctx, "read-tree", "-m", "-u", from, to); err != nil {
		return err
	}
	return ix.skip(ctx, after)
}

// knownOutside returns the paths outside of the cone that W has or had, as far as coven knows.
func knownOutside(ctx context.Context, w *repo.Worktree, tip string) (map[string]bool, error) {
	ix, err := openIndex(w, w.Git(), commitIndex)
	if err != nil {
		return nil, err
	}
	defer ix.drop()
	_, known, err := ix.outside(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := readOutside(w, tip)
	for _, p := range rec.Gone {
		known[p] = true
	}
	return known, err
}

// skipAsIn gives an index of snapshots entries for what W does not have outside of the cone, and
// reports whether that changes the index. What the task has deleted has none.
func (ix *index) skipAsIn(ctx context.Context, tip string, l listing) (bool, error) {
	if ix.w.Cone == nil || tip == "" {
		return false, nil
	}
	known, err := knownOutside(ctx, ix.w, tip)
	if err != nil {
		return false, err
	}
	counts, err := readOutside(ix.w, tip)
	if err != nil {
		return false, err
	}
	want, err := skippedOf(ctx, ix.w, counts.Tree, known, noneShown)
	if err != nil {
		return false, err
	}
	vivid := map[string]bool{}
	for _, p := range l.vivid {
		vivid[p] = true
	}
	have := slices.DeleteFunc(slices.Clone(l.skipped), func(e git.Entry) bool { return vivid[e.Path] })
	edits := replacing(have, want)
	if err := ix.put(ctx, edits); err != nil || len(edits) == 0 {
		return false, err
	}
	return true, ix.mark(ctx, skipOption, paths(slices.DeleteFunc(edits, func(e git.Entry) bool { return e.Mode == "0" })))
}

// unsparse removes settings that git copied from a sparse main checkout.
func unsparse(ctx context.Context, r *repo.Repo, admin string) error {
	dir := filepath.Join(r.GitDir, "worktrees", admin)
	err := os.Remove(filepath.Join(dir, "info", "sparse-checkout"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config := filepath.Join(dir, "config.worktree")
	if !file.Exists(config) {
		return nil
	}
	return r.Git().Run(ctx, "config", "--file", config, "core.sparseCheckout", "false")
}
