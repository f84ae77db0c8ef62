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

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/google/renameio/v2"
)

// The kept indexes of a worktree: one as commits need it (clean filters
// applied), one as snapshots need it (bytes as they are).
const (
	commitIndex   = "index"
	snapshotIndex = "snapshot-index"
)

// An index is one operation's own copy of a kept index.
type index struct {
	w    *Worktree
	git  git.Repo
	dir  string // holds the copy and git's lock for it
	kept string
	held *os.File // dir, locked
}

// operationPrefix begins the names of the directories of indexes.
const operationPrefix = "op-"

// openIndex copies the kept index with this name, or begins an empty one.
func (w *Worktree) openIndex(g git.Repo, name string) (*index, error) {
	if err := os.MkdirAll(w.ours(), 0o755); err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	dir, err := os.MkdirTemp(w.ours(), operationPrefix)
	if err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	ix := &index{w: w, git: g, dir: dir, kept: w.ours(name)}
	// The lock says that the directory is in use. Where there are no such locks
	// its age must do.
	if ix.held, err = os.Open(dir); err == nil {
		_ = syscall.Flock(int(ix.held.Fd()), syscall.LOCK_EX)
	}
	ix.git.Index = filepath.Join(dir, "index")
	// A link will do: git never changes an index in place. It also keeps the
	// time stamp, by which git knows which entries to look at again.
	if err := os.Link(ix.kept, ix.git.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ix.drop()
		return nil, fmt.Errorf("open an index: %w", err)
	}
	return ix, nil
}

// keep makes this copy the kept index.
func (ix *index) keep() error {
	if err := os.Rename(ix.git.Index, ix.kept); err != nil {
		return fmt.Errorf("keep the index: %w", err)
	}
	return nil
}

// drop forgets the copy. What cannot be deleted goes with the worktree.
func (ix *index) drop() {
	_ = os.RemoveAll(ix.dir)
	_ = ix.held.Close() // nil is an error, and none of ours
}

// publish also gives the index to W's own git, so that `git status` there is
// clean, and keeps it. Nothing is published when the agent has made away
// with its git directory.
func (ix *index) publish() error {
	if err := ix.copyTo(filepath.Join(ix.w.admin, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the index of %s: %w", ix.w.Path, err)
	}
	return ix.keep()
}

// copyTo replaces a file by a copy of the index that has its time stamp. A
// link would let the agent write into ours.
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

// switchTo moves the files from one tree, which the index holds, to another.
// git refuses to overwrite a file whose time stamp is not the one it knows, so
// it looks at those first: a file that was only touched is as it was.
func (ix *index) switchTo(ctx context.Context, from, to string) error {
	if err := ix.git.Run(ctx, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
		return err // 1: some files are changed
	}
	return ix.git.Run(ctx, "read-tree", "-m", "-u", from, to)
}

// tree stores the index as a tree.
func (ix *index) tree(ctx context.Context) (string, error) {
	return ix.git.Line(ctx, "write-tree")
}

// put replaces, adds or (with mode "0") removes entries, without files.
func (ix *index) put(ctx context.Context, entries []git.Entry) error {
	return ix.w.repo.put(ctx, ix.git, entries)
}

func (r *Repo) put(ctx context.Context, g git.Repo, entries []git.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var lines []string
	for _, e := range entries {
		oid := e.Oid
		if e.Mode == "0" {
			oid = strings.Repeat("0", r.oidLength())
		}
		lines = append(lines, e.Mode+" "+oid+"\t"+e.Path)
	}
	_, err := g.Feed(ctx, git.Join(lines), "update-index", "-z", "--add", "--replace", "--index-info")
	return err
}

// take makes the entries of these paths what the files are; a path without a
// file loses its entry.
func (ix *index) take(ctx context.Context, paths []string) error {
	return ix.w.repo.take(ctx, ix.git, paths)
}

// take also does it for the index of a person's checkout.
func (r *Repo) take(ctx context.Context, g git.Repo, paths []string) error {
	var there []string
	var gone []git.Entry
	for _, p := range paths {
		if beyondLink(g.WorkTree, p) { // git refuses them, also to remove them
			gone = append(gone, git.Entry{Mode: "0", Path: p})
		} else {
			there = append(there, p)
		}
	}
	if err := r.put(ctx, g, gone); err != nil || len(there) == 0 {
		return err
	}
	_, err := g.Feed(ctx, git.Join(there), "update-index", "-z", "--add", "--remove", "--replace", "--stdin")
	return err
}

// beyondLink reports whether a directory of a path is a symbolic link, so that
// what is found there is not in this checkout.
func beyondLink(top, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(top, dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func (r *Repo) oidLength() int {
	if r.format == "sha256" {
		return 64
	}
	return 40
}
