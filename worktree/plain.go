package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

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

// unchangedTree returns the tree of the branch's tip if W is known to have exactly its files, as they are
// stored: a snapshot has that tree, too. One listing shows it, or none if Add has just made W.
func unchangedTree(ctx context.Context, w *repo.Worktree) (tree string, ok bool) {
	if !committedLast(w) || !unconverting(ctx, w.Repo) {
		return "", false
	}
	ix, err := openIndex(w, w.Git(), commitIndex)
	if err != nil {
		return "", false
	}
	defer ix.drop()
	if tree = ix.knownTree(); tree == "" || !isTipTree(ctx, w, tree) {
		return "", false
	}
	if ix.fresh == tree {
		converted, err := mayConvert(ctx, w.Repo, tree)
		return tree, err == nil && !converted && w.CheckExists() == nil
	}
	l, err := ix.list(ctx, withoutIgnored)
	if err != nil || !l.clean() || w.CheckExists() != nil {
		return "", false
	}
	converted, err := dirsHave(w, l.entries, ".gitattributes")
	return tree, err == nil && !converted
}

// committedLast reports whether W is more likely to be as the index for commits than as that for snapshots,
// because it is the younger one.
func committedLast(w *repo.Worktree) bool {
	commits, err := os.Lstat(w.StatePath(commitIndex))
	if err != nil {
		return false
	}
	snapshots, err := os.Lstat(w.StatePath(snapshotIndex))
	return err != nil || !snapshots.ModTime().After(commits.ModTime())
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
	if file.Exists(filepath.Join(w.Admin, modulesDir)) || file.CheckDirectory(filepath.Join(w.Path, ".git")) == nil {
		return false
	}
	ix, err := openIndex(w, w.Git(), commitIndex)
	if err != nil {
		return false
	}
	defer ix.drop()
	if ix.knownTree() != tree {
		return false
	}
	l, err := ix.list(ctx, withIgnored)
	if err != nil || !l.clean() || w.CheckExists() != nil {
		return false
	}
	repositories, err := dirsHave(w, l.entries, ".git")
	return err == nil && !repositories && isReadable(w)
}

// isReadable reports whether all directories of W can be read. git leaves out the files of others, as if they
// did not exist: they may belong to another user, or have a path that is too long.
func isReadable(w *repo.Worktree) bool {
	return filepath.WalkDir(w.Path, func(_ string, _ fs.DirEntry, err error) error { return err }) == nil
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
	tree := ix.knownTree()
	if tree == "" {
		return
	}
	entries, err := w.Repo.Git().Entries(ctx, tree)
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
