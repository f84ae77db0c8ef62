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
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Mostly, W is exactly what coven left there, and git stores its files as they are. Then one
// listing with the index for commits answers what would need several of both indexes.

// unconverting reports whether git stores the bytes of files as they are, whatever a tree's
// attributes say.
func unconverting(ctx context.Context, r *repo.Repo) bool {
	settings, err := r.Git().Configured(ctx, `^core\.(autocrlf|eol|attributesfile|symlinks)$`, false)
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
func dirsHave(w *repo.Worktree, paths []string, names ...string) (bool, error) {
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

// lookAtPaths compares W with the index for commits. It returns the tree that the index has, and the
// listing of it; ok is false if the tree is not known, or W differs.
func lookAtPaths(ctx context.Context, w *repo.Worktree, option string) (tree string, l listing, ok bool) {
	ix, err := openIndex(w, w.Git(), commitIndex)
	if err != nil {
		return "", l, false
	}
	defer ix.drop()
	if tree = ix.knownTree(); tree == "" {
		return "", l, false
	}
	l, err = ix.list(ctx, option)
	return tree, l, err == nil && l.clean() && w.CheckExists() == nil
}

// plainTree returns the tree that a snapshot of W has, if one listing shows what differs from the
// index for commits, and if that is not much.
func plainTree(ctx context.Context, w *repo.Worktree) (string, error) {
	if !unconverting(ctx, w.Repo) {
		return "", errLookAtAll
	}
	ix, err := openIndex(w, w.Git(), commitIndex)
	if err != nil {
		return "", err
	}
	defer ix.drop()
	tree := ix.knownTree()
	if tree == "" || w.Cone != nil && !isTipTree(ctx, w, tree) { // a snapshot has the branch's entries for what is not there
		return "", errLookAtAll
	}
	if ix.fresh == tree {
		return tree, w.CheckExists()
	}
	if err := ix.refreshOnce(ctx, tree); err != nil {
		return "", err
	}
	changed, err := changedFrom(ctx, w, ix, tree)
	if err != nil || len(changed) == 0 {
		return tree, errors.Join(err, w.CheckExists())
	}
	if w.Cone != nil || !w.Repo.Git().WritesInProcess(ctx) {
		return "", errLookAtAll
	}
	var edits []git.Entry
	for _, p := range changed {
		e, err := fileEntry(ctx, w, p)
		if err != nil {
			return "", err
		}
		edits = append(edits, e)
	}
	tree, err = w.Repo.Git().EditTree(ctx, tree, edits)
	return tree, errors.Join(err, w.CheckExists())
}

// refreshOnce updates what an index that has this tree knows of the files. git has to read all
// files that were written in the same second as their index, for each listing.
func (ix *index) refreshOnce(ctx context.Context, tree string) error {
	info, err := os.Stat(ix.git.Index)
	if err != nil || time.Since(info.ModTime()) < 2*time.Second {
		return err // it would not help yet
	}
	memo := &ix.w.Repo.Memo.Refreshed
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
func changedFrom(ctx context.Context, w *repo.Worktree, ix *index, tree string) ([]string, error) {
	changed, converted, err := ix.mayDiffer(ctx, tree)
	if err != nil || converted {
		return nil, errors.Join(err, errLookAtAll)
	}
	committed, err := committedSince(ctx, w, tree)
	if err != nil {
		return nil, err
	}
	if len(committed) > 0 {
		converted, err = dirsHave(w, committed, ".gitattributes")
	}
	changed = append(changed, committed...)
	slices.Sort(changed)
	changed = slices.Compact(changed)
	if err != nil || converted || !few(w, changed) {
		return nil, errors.Join(err, errLookAtAll)
	}
	return changed, nil
}

// mayDiffer lists the files of W that may differ from an index, which has this tree, and reports whether git
// may store files of W with other bytes. git is asked only about files that the index does not have: they
// may be ignored.
func (ix *index) mayDiffer(ctx context.Context, tree string) (changed []string, converted bool, err error) {
	seen, err := ix.git.Glance(unconverting(ctx, ix.w.Repo))
	isNew := func(name string) bool { _, has := slices.BinarySearch(seen.Files, name); return !has }
	if err == nil && !slices.ContainsFunc(seen.Suspects, isNew) {
		return seen.Suspects, seen.Attributes, nil
	}
	shape, err := shapeOf(ctx, ix.w.Repo, tree)
	if err != nil || shape.Links {
		return nil, false, errors.Join(err, errLookAtAll)
	}
	l, err := ix.list(ctx, withoutIgnored)
	if err != nil || len(l.nested) > 0 {
		return nil, false, errors.Join(err, errLookAtAll)
	}
	changed = append(l.stale, l.untracked...)
	converted, err = dirsHave(ix.w, slices.Concat(shape.Files, changed), ".gitattributes")
	return changed, converted, err
}

// committedSince lists the files that the branch has but a tree has not: a snapshot has them even
// if ignore rules match them.
func committedSince(ctx context.Context, w *repo.Worktree, tree string) ([]string, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil || tip == "" {
		return nil, err
	}
	changes, err := w.Repo.Git().Changes(ctx, tree, tip)
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
func few(w *repo.Worktree, files []string) bool {
	bytes := int64(0)
	for _, name := range files {
		if info, err := os.Lstat(filepath.Join(w.Path, name)); err == nil {
			bytes += info.Size()
		}
	}
	return len(files) <= maxFew && bytes <= maxFewBytes
}

// shapeOf returns the shape of a tree. That of the last one is remembered.
func shapeOf(ctx context.Context, r *repo.Repo, tree string) (repo.TreeShape, error) {
	r.Memo.Mu.Lock()
	known := r.Memo.Shape
	r.Memo.Mu.Unlock()
	if known.Tree == tree {
		return known, nil
	}
	entries, err := r.Git().Entries(ctx, tree)
	if err != nil {
		return repo.TreeShape{}, err
	}
	shape := repo.TreeShape{Tree: tree}
	seen := map[string]bool{}
	for _, e := range entries {
		if dir := path.Dir(e.Path); !seen[dir] {
			seen[dir] = true
			shape.Files = append(shape.Files, e.Path)
		}
		shape.Links = shape.Links || e.Mode == git.ModeSubmodule
	}
	r.Memo.Mu.Lock()
	r.Memo.Shape = shape
	r.Memo.Mu.Unlock()
	return shape, nil
}

// isTipTree reports whether the branch's tip has a tree.
func isTipTree(ctx context.Context, w *repo.Worktree, tree string) bool {
	tip, err := w.Tip(ctx)
	return err == nil && isTreeOf(ctx, w, tip, tree)
}

// isTreeOf reports whether a commit, if there is one, has a tree.
func isTreeOf(ctx context.Context, w *repo.Worktree, commit, tree string) bool {
	if commit == "" {
		return false
	}
	of, err := w.Repo.Git().Tree(ctx, commit)
	return err == nil && of == tree
}

// holdsOnly reports whether one listing shows that W has the files of a tree and nothing else: no
// ignored files and no git directories.
func holdsOnly(ctx context.Context, w *repo.Worktree, tree string) bool {
	if file.Exists(filepath.Join(w.Admin, modulesDir)) {
		return false
	}
	found, l, ok := lookAtPaths(ctx, w, withIgnored)
	if !ok || found != tree || file.CheckDirectory(filepath.Join(w.Path, ".git")) == nil {
		return false
	}
	repositories, err := dirsHave(w, l.entries, ".git")
	return err == nil && !repositories && readable(w, l.looked)
}

// readable reports whether all directories at and below some paths of W can be read. What is in others, git
// leaves out, as if it did not exist: they may belong to another user, or have a path that is too long.
func readable(w *repo.Worktree, paths []string) bool {
	return !slices.ContainsFunc(paths, func(name string) bool {
		return filepath.WalkDir(filepath.Join(w.Path, name), func(_ string, _ fs.DirEntry, err error) error { return err }) != nil
	})
}

// seedSnapshots makes the index for commits the first index for snapshots, if they would be the
// same: otherwise the first snapshot reads all files.
func seedSnapshots(ctx context.Context, w *repo.Worktree) {
	if file.Exists(w.StatePath(snapshotIndex)) || !unconverting(ctx, w.Repo) {
		return
	}
	ix, err := openIndex(w, w.Git(), commitIndex)
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
	if converted, err := dirsHave(w, paths, ".gitattributes"); err == nil && !converted {
		_ = os.Link(ix.git.Index, w.StatePath(snapshotIndex)) // without it, git makes a new one
	}
}
