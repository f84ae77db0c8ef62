// Package content reads and changes the files of a worktree through git's index: it lists differences,
// stages files for commits and snapshots, stores trees, and moves the files from one tree to another.
//
// Commits and snapshots have different trees. A commit contains the files as git converts them, without
// ignored files, and with the target's reserved paths (.beads, .coven/sessions). A snapshot contains the
// bytes of the files. Each has its own kept index; operations change copies of it.
package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The names of a worktree's kept indexes.
const (
	CommitIndex   = "index"
	SnapshotIndex = "snapshot-index"
)

// An Index is one operation's private copy of a kept index.
type Index struct {
	Worktree *repo.Worktree
	Git      git.Repo
	Dir      string // contains the copy and git's lock for it
	Kept     string
	held     *os.File // Dir, locked
	// SkipLarge makes Update omit files that are too large to store.
	SkipLarge bool
	// LeftOut is set by Stage: the new paths that are left out of the change.
	LeftOut []LeftOut

	equals keptTree // see SetEqual
	fresh  string   // the tree that Add has just checked out, empty if the files must be compared
}

// OperationPrefix is the prefix of the names of index directories.
const OperationPrefix = "op-"

// Open copies the kept index with this name, or creates an empty one.
func Open(w *repo.Worktree, g git.Repo, name string) (*Index, error) {
	if err := os.MkdirAll(w.StatePath(), 0o755); err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	dir, err := os.MkdirTemp(w.StatePath(), OperationPrefix)
	if err != nil {
		return nil, fmt.Errorf("open an index: %w", err)
	}
	ix := &Index{Worktree: w, Git: g, Dir: dir, Kept: w.StatePath(name)}
	if tree, known := w.Repo.Memo.Fresh.LoadAndDelete(ix.Kept); known {
		ix.fresh = tree.(string)
	}
	// The lock shows that the directory is in use. On file systems without locks, its age is used instead.
	if ix.held, err = os.Open(dir); err == nil {
		_ = syscall.Flock(int(ix.held.Fd()), syscall.LOCK_EX)
	}
	ix.Git.Index = filepath.Join(dir, "index")
	if damaged(ix.Kept) {
		_ = os.RemoveAll(ix.Kept) // git creates a new one from the files; os.Link reports an error if it is still there
	}
	// A link suffices, because git never changes an index in place. It preserves the modification time,
	// which git needs to detect changed entries.
	if err := os.Link(ix.Kept, ix.Git.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ix.Drop()
		return nil, fmt.Errorf("open an index: %w", err)
	}
	return ix, nil
}

// damaged reports whether a kept index is invalid. git does not sync it, so it may be empty after a power
// failure.
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

// indexSignature is the beginning of every git index.
const indexSignature = "DIRC"

// Keep makes this copy the kept index.
func (ix *Index) Keep() error {
	if err := os.Rename(ix.Git.Index, ix.Kept); err != nil {
		return fmt.Errorf("store the index: %w", err)
	}
	ix.Worktree.Repo.Memo.Trees.Store(ix.Kept, ix.equals)
	return nil
}

// Drop removes the copy. If that fails, the copy is removed with the worktree.
func (ix *Index) Drop() {
	_ = os.RemoveAll(ix.Dir)
	_ = ix.held.Close() // closing a nil file returns an error, which is harmless
}

// Publish keeps the index and copies it to the worktree's git directory, so that `git status` in the
// worktree is clean. If the agent has removed that directory, nothing is copied.
func (ix *Index) Publish() error {
	if err := ix.CopyTo(filepath.Join(ix.Worktree.Admin, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the index of %s: %w", ix.Worktree.Path, err)
	}
	return ix.Keep()
}

// CopyTo replaces the file name with a copy of the index and its modification time. It must not be a link,
// because the agent could then change coven's index.
func (ix *Index) CopyTo(name string) error {
	in, err := os.Open(ix.Git.Index)
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

// SwitchTo moves the files from one tree, which is in the index, to another. git refuses to overwrite a
// file with an unknown modification time. Then SwitchTo refreshes the index and tries again, because the
// file may only have been touched.
func (ix *Index) SwitchTo(ctx context.Context, from, to string, show Show) error {
	refused := ix.Move(ctx, from, to, show)
	if refused == nil {
		return nil
	}
	if err := ix.Git.Run(ctx, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
		return refused // exit code 1 means that some files have changed
	}
	if ix.Move(ctx, from, to, show) != nil {
		return refused
	}
	return nil
}

// WriteTree stores the index as a tree.
func (ix *Index) WriteTree(ctx context.Context) (string, error) {
	return ix.Git.Line(ctx, "write-tree")
}

// Put replaces, adds or (with mode "0") removes entries. It does not touch files.
func (ix *Index) Put(ctx context.Context, entries []object.Entry) error {
	return Put(ctx, ix.Worktree.Repo, ix.Git, entries)
}

// Put is Index.Put for the index of any checkout.
func Put(ctx context.Context, r *repo.Repo, g git.Repo, entries []object.Entry) error {
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

func oidLength(r *repo.Repo) int {
	if r.Format == "sha256" {
		return 64
	}
	return 40
}

// CheckOutOnly writes the files of the entries. It does not add the entries to the index.
func (ix *Index) CheckOutOnly(ctx context.Context, entries []object.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	g := ix.Git
	g.Index = filepath.Join(ix.Dir, "apart")
	apart := &Index{Worktree: ix.Worktree, Git: g, Dir: ix.Dir}
	if err := apart.Put(ctx, entries); err != nil {
		return err
	}
	err := apart.Git.Run(ctx, "checkout-index", "--all", "--quiet")
	if removeErr := os.Remove(g.Index); err == nil {
		err = removeErr
	}
	return err
}
