package content

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// storesUnconverted reports whether git stores files without conversion, as long as the tree has no attributes
// of its own.
func storesUnconverted(ctx context.Context, r *repo.Repo) bool {
	settings, err := r.Git().Configured(ctx, `^core\.(autocrlf|eol|attributesfile|symlinks)$`, false)
	return err == nil && len(settings) == 0 && !slices.ContainsFunc(attributesFiles(ctx, r), file.Exists)
}

// attributesFiles lists the attributes files that git reads in addition to those of a checkout.
func attributesFiles(ctx context.Context, r *repo.Repo) []string {
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(os.Getenv("HOME"), ".config")
	}
	return []string{filepath.Join(r.GitDir, "info", "attributes"), filepath.Join(config, "git", "attributes"), systemAttributes(ctx, r)}
}

// systemAttributes returns the path of the system's attributes file, which differs between builds of git.
func systemAttributes(ctx context.Context, r *repo.Repo) string {
	r.Memo.Mu.Lock()
	defer r.Memo.Mu.Unlock()
	if r.Memo.Attributes == "" {
		path, err := r.Git().Line(ctx, "var", "GIT_ATTR_SYSTEM")
		if err != nil || path == "" { // git before 2.42 does not know the variable
			path = "/etc/gitattributes"
		}
		if ctx.Err() != nil {
			return path // git may have been interrupted
		}
		r.Memo.Attributes = path
	}
	return r.Memo.Attributes
}

// dirsHave reports whether one of the names exists at the top of the worktree or in a directory of the
// paths.
func dirsHave(w *repo.Worktree, paths []string, names ...string) (bool, error) {
	for _, dir := range dirsOf(paths) {
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

// dirsOf returns the directories of the paths, including the top.
func dirsOf(paths []string) []string {
	dirs := map[string]bool{".": true}
	for _, p := range paths {
		for dir := path.Dir(p); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Collect(maps.Keys(dirs))
}

// UnchangedTree returns the tree of the branch's tip if the worktree is known to contain exactly its files,
// without conversion. A snapshot then has the same tree. The check takes one listing, or none if Add has
// just created the worktree.
func UnchangedTree(ctx context.Context, w *repo.Worktree) (tree string, ok bool) {
	if !commitIndexNewer(w) || !storesUnconverted(ctx, w.Repo) {
		return "", false
	}
	ix, err := Open(w, w.Git(), CommitIndex)
	if err != nil {
		return "", false
	}
	defer ix.Drop()
	if tree = ix.KnownTree(); tree == "" || !isTipTree(ctx, w, tree) {
		return "", false
	}
	if ix.fresh == tree {
		converted, err := MayConvert(ctx, w.Repo, tree)
		return tree, err == nil && !converted && w.CheckExists() == nil
	}
	l, err := ix.List(ctx, WithoutIgnored)
	if err != nil || !l.Clean() || len(l.LeftOut) > 0 || w.CheckExists() != nil { // a snapshot has some of these
		return "", false
	}
	converted, err := dirsHave(w, l.entries, ".gitattributes")
	return tree, err == nil && !converted
}

// commitIndexNewer reports whether the index for commits is newer than the one for snapshots. The worktree is
// then more likely to equal the former.
func commitIndexNewer(w *repo.Worktree) bool {
	commits, err := os.Lstat(w.StatePath(CommitIndex))
	if err != nil {
		return false
	}
	snapshots, err := os.Lstat(w.StatePath(SnapshotIndex))
	return err != nil || !snapshots.ModTime().After(commits.ModTime())
}

// isTipTree reports whether tree is the tree of the branch's tip.
func isTipTree(ctx context.Context, w *repo.Worktree, tree string) bool {
	tip, err := w.Tip(ctx)
	return err == nil && IsTreeOf(ctx, w, tip, tree)
}

// IsTreeOf reports whether tree is the tree of commit. It returns false if commit is empty.
func IsTreeOf(ctx context.Context, w *repo.Worktree, commit, tree string) bool {
	if commit == "" {
		return false
	}
	of, err := w.Repo.Git().Tree(ctx, commit)
	return err == nil && of == tree
}

// HoldsOnly reports whether the worktree is known to contain exactly the files of a tree, without ignored
// files and git directories. The check takes one listing.
func HoldsOnly(ctx context.Context, w *repo.Worktree, tree string) bool {
	if file.Exists(filepath.Join(w.Admin, submodule.ModulesDir)) || file.CheckDirectory(filepath.Join(w.Path, ".git")) == nil {
		return false
	}
	ix, err := Open(w, w.Git(), CommitIndex)
	if err != nil {
		return false
	}
	defer ix.Drop()
	if ix.KnownTree() != tree {
		return false
	}
	l, err := ix.List(ctx, withIgnored)
	if err != nil || !l.Clean() || w.CheckExists() != nil {
		return false
	}
	repositories, err := dirsHave(w, l.entries, ".git")
	return err == nil && !repositories && isReadable(w)
}

// isReadable reports whether all directories of the worktree can be read. git silently omits unreadable
// ones, which may belong to another user or have too long a path.
func isReadable(w *repo.Worktree) bool {
	return filepath.WalkDir(w.Path, func(_ string, _ fs.DirEntry, err error) error { return err }) == nil
}

// SeedSnapshots makes the index for commits the first snapshot index, if both would have the same content.
// Without it, the first snapshot reads all files.
func SeedSnapshots(ctx context.Context, w *repo.Worktree) {
	if file.Exists(w.StatePath(SnapshotIndex)) || !storesUnconverted(ctx, w.Repo) {
		return
	}
	ix, err := Open(w, w.Git(), CommitIndex)
	if err != nil {
		return
	}
	defer ix.Drop()
	tree := ix.KnownTree()
	if tree == "" {
		return
	}
	entries, err := w.Repo.Git().Entries(ctx, tree)
	if err != nil || slices.ContainsFunc(entries, func(e object.Entry) bool { return e.Mode == object.ModeSubmodule }) {
		return // a snapshot contains the files of submodules
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, e.Path)
	}
	if converted, err := dirsHave(w, paths, ".gitattributes"); err == nil && !converted {
		_ = os.Link(ix.Git.Index, w.StatePath(SnapshotIndex)) // if this fails, git creates a new index
	}
}

// MayConvert reports whether git may write files whose bytes differ from their blobs.
func MayConvert(ctx context.Context, r *repo.Repo, tree string) (bool, error) {
	entries, err := r.Git().Entries(ctx, tree)
	attributes := slices.ContainsFunc(entries, func(e object.Entry) bool { return path.Base(e.Path) == ".gitattributes" })
	return attributes || !storesUnconverted(ctx, r), err
}
