package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The kept indexes of a worktree: one for commits (with clean filters applied), and
// one for snapshots (with unchanged bytes).
const (
	commitIndex   = "index"
	snapshotIndex = "snapshot-index"
)

// An index is one operation's own copy of a kept index.
type index struct {
	w    *repo.Worktree
	git  git.Repo
	dir  string // holds the copy and git's lock for it
	kept string
	held *os.File // dir, locked

	equals keptTree // see setEqual
	fresh  string   // the tree that W has, if Add has just made it; empty: W must be compared
}

// operationPrefix begins the names of the directories of indexes.
const operationPrefix = "op-"

// openIndex copies the kept index with this name, or creates an empty one.
func openIndex(w *repo.Worktree, g git.Repo, name string) (*index, error) {
	if err := os.MkdirAll(w.StatePath(), 0o755); err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	dir, err := os.MkdirTemp(w.StatePath(), operationPrefix)
	if err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	ix := &index{w: w, git: g, dir: dir, kept: w.StatePath(name)}
	if tree, known := w.Repo.Memo.Fresh.LoadAndDelete(ix.kept); known {
		ix.fresh = tree.(string)
	}
	// The lock shows that the directory is in use. On file systems without such locks, its
	// age is used instead.
	if ix.held, err = os.Open(dir); err == nil {
		_ = syscall.Flock(int(ix.held.Fd()), syscall.LOCK_EX)
	}
	ix.git.Index = filepath.Join(dir, "index")
	if damaged(ix.kept) {
		_ = os.RemoveAll(ix.kept) // git makes a new one from the files; Link reports what stays
	}
	// A link is sufficient, because git never changes an index in place. It preserves the
	// time stamp, which git needs to detect changed entries.
	if err := os.Link(ix.kept, ix.git.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ix.drop()
		return nil, fmt.Errorf("open an index: %w", err)
	}
	return ix, nil
}

// damaged reports whether a kept index is not one: git does not sync it, so that it can be empty
// after a power failure.
func damaged(path string) bool {
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	file, err := regularfile.Open(path, syscall.O_NOFOLLOW)
	if err != nil {
		return !errors.Is(err, fs.ErrPermission)
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, len(indexSignature))
	_, err = io.ReadFull(file, head)
	return err != nil || string(head) != indexSignature
}

// indexSignature begins every index of git.
const indexSignature = "DIRC"

// keep makes this copy the kept index.
func (ix *index) keep() error {
	if err := os.Rename(ix.git.Index, ix.kept); err != nil {
		return fmt.Errorf("store the index: %w", err)
	}
	ix.w.Repo.Memo.Trees.Store(ix.kept, ix.equals)
	return nil
}

// drop removes the copy. Leftovers are removed with the worktree.
func (ix *index) drop() {
	_ = os.RemoveAll(ix.dir)
	_ = ix.held.Close() // the error for nil does not matter
}

// publish keeps the index and copies it to W's own git directory, so that `git status`
// in W is clean. If the agent has removed that directory, nothing is copied.
func (ix *index) publish() error {
	if err := ix.copyTo(filepath.Join(ix.w.Admin, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the index of %s: %w", ix.w.Path, err)
	}
	return ix.keep()
}

// copyTo replaces a file by a copy of the index with the same time stamp. With a link,
// the agent could change coven's index.
func (ix *index) copyTo(name string) error {
	in, err := os.Open(ix.git.Index)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := renameio.NewPendingFile(name, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(name)))
	if err != nil {
		return err
	}
	defer func() { _ = out.Cleanup() }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := os.Chtimes(out.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

// switchTo moves the files from one tree, which is in the index, to another. git refuses to overwrite
// a file with an unknown time stamp: then the index is refreshed, because a file that was only touched
// has not changed.
func (ix *index) switchTo(ctx context.Context, from, to string, show shown) error {
	refused := ix.move(ctx, from, to, show)
	if refused == nil {
		return nil
	}
	if err := ix.git.Run(ctx, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
		return refused // 1: some files are changed
	}
	if ix.move(ctx, from, to, show) != nil {
		return refused
	}
	return nil
}

// tree stores the index as a tree.
func (ix *index) tree(ctx context.Context) (string, error) {
	return ix.git.Line(ctx, "write-tree")
}

// put replaces, adds or (with mode "0") removes entries without touching files.
func (ix *index) put(ctx context.Context, entries []git.Entry) error {
	return put(ctx, ix.w.Repo, ix.git, entries)
}

func put(ctx context.Context, r *repo.Repo, g git.Repo, entries []git.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var lines []string
	for _, e := range entries {
		oid := e.Oid
		if e.Mode == "0" {
			oid = strings.Repeat("0", oidLength(r))
		}
		lines = append(lines, e.Mode+" "+oid+"\t"+e.Path)
	}
	_, err := g.Feed(ctx, git.Join(lines), "update-index", "-z", "--add", "--replace", "--index-info")
	return err
}

// take updates the entries of these paths from the files, and removes the entries of
// missing files.
func (ix *index) take(ctx context.Context, paths []string) error {
	return takePaths(ctx, ix.w.Repo, ix.git, paths)
}

// takePaths updates entries, also for the index of a user's checkout.
func takePaths(ctx context.Context, r *repo.Repo, g git.Repo, paths []string) error {
	var there []string
	var gone []git.Entry
	for _, p := range paths {
		if beyondLink(g.WorkTree, p) { // git refuses to add or remove them
			gone = append(gone, git.Entry{Mode: "0", Path: p})
		} else {
			there = append(there, p)
		}
	}
	if err := put(ctx, r, g, gone); err != nil || len(there) == 0 {
		return err
	}
	_, err := g.Feed(ctx, git.Join(there), "update-index", "-z", "--add", "--remove", "--replace", "--stdin")
	return err
}

// beyondLink reports whether a directory of a path is a symbolic link, so that the
// path is not in this checkout.
func beyondLink(top, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(top, dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func oidLength(r *repo.Repo) int {
	if r.Format == "sha256" {
		return 64
	}
	return 40
}
