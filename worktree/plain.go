package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// Mostly, W is exactly what coven left there, and git stores its files as they are. Then one
// listing with the index for commits answers what would need several of both indexes.

// unconverting reports whether git stores the bytes of files as they are, whatever a tree's
// attributes say.
func (r *Repo) unconverting(ctx context.Context) bool {
	settings, err := r.git().Configured(ctx, `^core\.(autocrlf|eol|attributesfile|symlinks)$`, false)
	return err == nil && len(settings) == 0 && !slices.ContainsFunc(attributesFiles(r.GitDir), file.Exists)
}

// attributesFiles lists where git looks for attributes besides the files of a checkout.
func attributesFiles(gitDir string) []string {
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(os.Getenv("HOME"), ".config")
	}
	return []string{filepath.Join(gitDir, "info", "attributes"), filepath.Join(config, "git", "attributes"), "/etc/gitattributes"}
}

// dirsHave reports whether W has one of these names at its top or in a directory of the paths.
func (w *Worktree) dirsHave(paths []string, names ...string) (bool, error) {
	dirs := map[string]bool{".": true}
	for _, p := range paths {
		for dir := path.Dir(p); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		for _, name := range names {
			if dir == "." && name == ".git" {
				continue
			}
			if _, err := os.Lstat(filepath.Join(w.Path, dir, name)); !errors.Is(err, fs.ErrNotExist) {
				return true, err
			}
		}
	}
	return false, nil
}

// look compares W with the index for commits. It returns the tree that the index has, and the
// listing of it; ok is false if the tree is not known, or W differs.
func (w *Worktree) look(ctx context.Context, option string) (tree string, l listing, ok bool) {
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return "", l, false
	}
	defer ix.drop()
	if tree = ix.knownTree(); tree == "" {
		return "", l, false
	}
	l, err = ix.list(ctx, option)
	return tree, l, err == nil && l.clean() && w.here() == nil
}

// plainTree returns the tree that a snapshot of W has, if one listing shows what differs from the
// index for commits, and if that is not much.
func (w *Worktree) plainTree(ctx context.Context) (string, error) {
	if !w.repo.unconverting(ctx) {
		return "", errLookAtAll
	}
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return "", err
	}
	defer ix.drop()
	tree := ix.knownTree()
	if tree == "" || w.cone != nil && !w.isTipTree(ctx, tree) { // a snapshot has the branch's entries for what is not there
		return "", errLookAtAll
	}
	if ix.fresh == tree {
		return tree, w.here()
	}
	if err := ix.refreshOnce(ctx, tree); err != nil {
		return "", err
	}
	changed, err := w.changedFrom(ctx, ix, tree)
	if err != nil || len(changed) == 0 {
		return tree, errors.Join(err, w.here())
	}
	if w.cone != nil || !w.repo.git().WritesInProcess(ctx) {
		return "", errLookAtAll
	}
	var edits []git.Entry
	for _, p := range changed {
		e, err := w.entryOf(ctx, p)
		if err != nil {
			return "", err
		}
		edits = append(edits, e)
	}
	tree, err = w.repo.git().EditTree(ctx, tree, edits)
	return tree, errors.Join(err, w.here())
}

// refreshOnce updates what an index that has this tree knows of the files. git has to read all
// files that were written in the same second as their index, for each listing.
func (ix *index) refreshOnce(ctx context.Context, tree string) error {
	info, err := os.Stat(ix.git.Index)
	if err != nil || time.Since(info.ModTime()) < 2*time.Second {
		return err // it would not help yet
	}
	memo := &ix.w.repo.memo.refreshed
	if last, known := memo.Load(ix.kept); known && last == info.ModTime() {
		return nil
	}
	memo.Store(ix.kept, info.ModTime())
	if err := ix.git.Run(ctx, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
		return err // 1: some files are changed
	}
	ix.setEqual(tree)
	if info, err = os.Stat(ix.git.Index); err == nil {
		memo.Store(ix.kept, info.ModTime())
		err = ix.keep()
	}
	if err == nil {
		err = os.Link(ix.kept, ix.git.Index)
	}
	return err
}

// changedFrom lists the files of W that may differ from an index, which has this tree.
func (w *Worktree) changedFrom(ctx context.Context, ix *index, tree string) ([]string, error) {
	changed, converted, err := ix.mayDiffer(ctx, tree)
	if err != nil || converted {
		return nil, errors.Join(err, errLookAtAll)
	}
	committed, err := w.committedSince(ctx, tree)
	if err != nil {
		return nil, err
	}
	if len(committed) > 0 {
		converted, err = w.dirsHave(committed, ".gitattributes")
	}
	changed = append(changed, committed...)
	slices.Sort(changed)
	changed = slices.Compact(changed)
	if err != nil || converted || !w.few(changed) {
		return nil, errors.Join(err, errLookAtAll)
	}
	return changed, nil
}

// mayDiffer lists the files of W that may differ from an index, which has this tree, and reports whether git
// may store files of W with other bytes. git is asked only about files that the index does not have: they
// may be ignored.
func (ix *index) mayDiffer(ctx context.Context, tree string) (changed []string, converted bool, err error) {
	seen, err := ix.git.Glance(ix.w.repo.unconverting(ctx))
	isNew := func(name string) bool { _, has := slices.BinarySearch(seen.Files, name); return !has }
	if err == nil && !slices.ContainsFunc(seen.Suspects, isNew) {
		return seen.Suspects, seen.Attributes, nil
	}
	shape, err := ix.w.repo.shapeOf(ctx, tree)
	if err != nil || shape.links {
		return nil, false, errors.Join(err, errLookAtAll)
	}
	l, err := ix.list(ctx, withoutIgnored)
	if err != nil || len(l.nested) > 0 {
		return nil, false, errors.Join(err, errLookAtAll)
	}
	changed = append(l.stale, l.untracked...)
	converted, err = ix.w.dirsHave(slices.Concat(shape.files, changed), ".gitattributes")
	return changed, converted, err
}

// committedSince lists the files that the branch has but a tree has not: a snapshot has them even
// if ignore rules match them.
func (w *Worktree) committedSince(ctx context.Context, tree string) ([]string, error) {
	tip, err := w.tipIfAny(ctx)
	if err != nil || tip == "" {
		return nil, err
	}
	changes, err := w.repo.git().Changes(ctx, tree, tip)
	var added []string
	for _, c := range changes {
		if c.Status == 'A' && c.Mode != git.ModeSubmodule {
			added = append(added, c.Path)
		}
	}
	return added, err
}

// Limits of what is read again for each snapshot, until it is committed.
const (
	maxFew      = 500
	maxFewBytes = 16 << 20
)

// few reports whether these files of W are few and small.
func (w *Worktree) few(files []string) bool {
	bytes := int64(0)
	for _, name := range files {
		if info, err := os.Lstat(filepath.Join(w.Path, name)); err == nil {
			bytes += info.Size()
		}
	}
	return len(files) <= maxFew && bytes <= maxFewBytes
}

// treeShape is what matters of a tree to one who looks at its files.
type treeShape struct {
	tree  string
	files []string // one of each directory
	links bool     // it names commits of other repositories
}

// shapeOf returns the shape of a tree. That of the last one is remembered.
func (r *Repo) shapeOf(ctx context.Context, tree string) (treeShape, error) {
	r.memo.mu.Lock()
	known := r.memo.shape
	r.memo.mu.Unlock()
	if known.tree == tree {
		return known, nil
	}
	entries, err := r.git().Entries(ctx, tree)
	if err != nil {
		return treeShape{}, err
	}
	shape := treeShape{tree: tree}
	seen := map[string]bool{}
	for _, e := range entries {
		if dir := path.Dir(e.Path); !seen[dir] {
			seen[dir] = true
			shape.files = append(shape.files, e.Path)
		}
		shape.links = shape.links || e.Mode == git.ModeSubmodule
	}
	r.memo.mu.Lock()
	r.memo.shape = shape
	r.memo.mu.Unlock()
	return shape, nil
}

// isTipTree reports whether the branch's tip has a tree.
func (w *Worktree) isTipTree(ctx context.Context, tree string) bool {
	tip, err := w.Tip(ctx)
	return err == nil && w.isTreeOf(ctx, tip, tree)
}

// isTreeOf reports whether a commit, if there is one, has a tree.
func (w *Worktree) isTreeOf(ctx context.Context, commit, tree string) bool {
	if commit == "" {
		return false
	}
	of, err := w.repo.git().Tree(ctx, commit)
	return err == nil && of == tree
}

// holdsOnly reports whether one listing shows that W has the files of a tree and nothing else: no
// ignored files and no git directories.
func (w *Worktree) holdsOnly(ctx context.Context, tree string) bool {
	if file.Exists(filepath.Join(w.admin, modulesDir)) {
		return false
	}
	found, l, ok := w.look(ctx, withIgnored)
	if !ok || found != tree || file.CheckDirectory(filepath.Join(w.Path, ".git")) == nil {
		return false
	}
	repositories, err := w.dirsHave(l.entries, ".git")
	return err == nil && !repositories && w.readable(l.looked)
}

// readable reports whether all directories at and below some paths of W can be read. What is in others, git
// leaves out, as if it did not exist: they may belong to another user, or have a path that is too long.
func (w *Worktree) readable(paths []string) bool {
	return !slices.ContainsFunc(paths, func(name string) bool {
		return filepath.WalkDir(filepath.Join(w.Path, name), func(_ string, _ fs.DirEntry, err error) error { return err }) != nil
	})
}

// seedSnapshots makes the index for commits the first index for snapshots, if they would be the
// same: otherwise the first snapshot reads all files.
func (w *Worktree) seedSnapshots(ctx context.Context) {
	if file.Exists(w.ours(snapshotIndex)) || !w.repo.unconverting(ctx) {
		return
	}
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return
	}
	defer ix.drop()
	fields, err := ix.git.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		return
	}
	entries, err := indexEntries(fields)
	if err != nil || slices.ContainsFunc(entries, func(e git.Entry) bool { return e.Mode == git.ModeSubmodule }) {
		return // a snapshot has the files of submodules
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, e.Path)
	}
	if converted, err := w.dirsHave(paths, ".gitattributes"); err == nil && !converted {
		_ = os.Link(ix.git.Index, w.ours(snapshotIndex)) // without it, git makes a new one
	}
}
