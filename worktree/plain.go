package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/worktree/internal/git"
)

// Mostly, W is exactly what coven left there, and git stores its files as they are. Then one
// listing with the index for commits answers what would need several of both indexes.

// unconverting reports whether git stores the bytes of files as they are, whatever a tree's
// attributes say.
func (r *Repo) unconverting(ctx context.Context) bool {
	settings, err := r.git().Configured(ctx, `^core\.(autocrlf|eol|attributesfile|symlinks)$`, false)
	return err == nil && len(settings) == 0 && !slices.ContainsFunc(attributesFiles(r.GitDir), isThere)
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
// paths in it; ok is false if the tree is not known, or W differs.
func (w *Worktree) look(ctx context.Context, option string) (tree string, paths []string, ok bool) {
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return "", nil, false
	}
	defer ix.drop()
	if tree = ix.knownTree(); tree == "" {
		return "", nil, false
	}
	l, err := ix.list(ctx, option)
	return tree, l.entries, err == nil && l.clean() && w.here() == nil
}

// untouched returns the tree whose files W has, all of them and no others except ignored ones, if
// one listing shows that, and if a snapshot of W is the same tree.
func (w *Worktree) untouched(ctx context.Context) (tree string, ok bool) {
	if !w.repo.unconverting(ctx) {
		return "", false
	}
	tree, paths, ok := w.look(ctx, withoutIgnored)
	if !ok {
		return "", false
	}
	if w.cone != nil { // a snapshot has the branch's entries for what is not there
		if tip, err := w.Tip(ctx); err != nil || !w.isTreeOf(ctx, tree, tip) {
			return "", false
		}
	}
	converted, err := w.dirsHave(paths, ".gitattributes")
	return tree, err == nil && !converted
}

func (w *Worktree) isTreeOf(ctx context.Context, tree, commit string) bool {
	of, err := w.repo.git().Tree(ctx, commit)
	return err == nil && of == tree
}

// holdsOnly reports whether one listing shows that W has the files of a tree and nothing else: no
// ignored files and no git directories.
func (w *Worktree) holdsOnly(ctx context.Context, tree string) bool {
	if isThere(filepath.Join(w.admin, modulesDir)) {
		return false
	}
	found, paths, ok := w.look(ctx, withIgnored)
	if !ok || found != tree {
		return false
	}
	repositories, err := w.dirsHave(paths, ".git")
	return err == nil && !repositories
}

// seedSnapshots makes the index for commits the first index for snapshots, if they would be the
// same: otherwise the first snapshot reads all files.
func (w *Worktree) seedSnapshots(ctx context.Context) {
	if isThere(w.ours(snapshotIndex)) || !w.repo.unconverting(ctx) {
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
