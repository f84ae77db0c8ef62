package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// Update updates the entries of these paths from the files. It removes the entries of missing files, of files
// behind a link, and of pipes and devices. The error is a *LargeError if the files are too large.
//
// git opens a file by its path, so that an agent that replaces it by a link at the right moment would have a
// file of the user stored. Therefore coven copies the files to a directory of its own without following
// links, and git reads them there, with the attributes and settings of the worktree.
func (ix *Index) Update(ctx context.Context, paths []string) error {
	paths, large, err := ix.checkLarge(paths)
	if err != nil || len(paths) == 0 {
		return err
	}
	c, err := ix.newCopy(large)
	if err != nil {
		return err
	}
	defer c.remove()
	for _, p := range paths {
		if err := c.add(ctx, p); err != nil {
			return err
		}
	}
	if err := c.addAttributes(ctx, paths); err != nil {
		return err
	}
	return ix.updateFrom(ctx, c, paths)
}

// updateFrom updates the entries of paths from their copies.
func (ix *Index) updateFrom(ctx context.Context, c *workCopy, paths []string) error {
	var there []string
	var gone []object.Entry
	for _, p := range paths {
		if file.BeyondLink(c.dir, p) { // git refuses to add or remove such a path
			gone = append(gone, object.Entry{Mode: "0", Path: p})
		} else {
			there = append(there, p)
		}
	}
	if err := ix.Put(ctx, gone); err != nil || len(there) == 0 {
		return err
	}
	before, err := os.Stat(ix.Git.Index)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	g := ix.Git
	g.WorkTree = c.dir
	if _, err := g.Feed(ctx, git.Join(there), "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return err
	}
	// git compares the content of entries that are not older than the index. In the copy, it could not do that for
	// the others before it wrote the index.
	if before != nil {
		if err := os.Chtimes(ix.Git.Index, before.ModTime(), before.ModTime()); err != nil {
			return err
		}
	}
	_ = ix.Git.Run(ctx, "update-index", "-q", "--refresh") // git compares the entries again if this fails
	return ctx.Err()
}

// A workCopy is a directory with copies of files of a worktree.
type workCopy struct {
	ix       *Index
	dir      string
	from, to *file.Root
	large    map[string]int64 // the sizes of the large files that may be copied
}

func (ix *Index) newCopy(large map[string]int64) (c *workCopy, err error) {
	c = &workCopy{ix: ix, dir: filepath.Join(ix.Dir, "files"), large: large}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("copy files: %w", err)
	}
	if c.to, err = file.OpenRoot(c.dir); err != nil {
		return nil, fmt.Errorf("copy files: %w", err)
	}
	if c.from, err = file.OpenRoot(ix.Git.WorkTree); err != nil {
		_ = c.to.Close()
		return nil, fmt.Errorf("copy files: %w", err)
	}
	return c, nil
}

// remove removes the copies. If that fails, they are removed with the index.
func (c *workCopy) remove() {
	_ = c.from.Close()
	_ = c.to.Close()
	_ = os.RemoveAll(c.dir)
}

// add copies a file, a link, or the head of a submodule. It copies nothing that git does not store.
func (c *workCopy) add(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := c.from.Lstat(name)
	if err == nil {
		switch {
		case file.IsRegular(st):
			err = c.addFile(ctx, name)
		case file.IsLink(st):
			err = c.addLink(name)
		case file.IsDirectory(st):
			err = c.addHead(name)
		}
	}
	if file.Missing(err) || errors.Is(err, regularfile.ErrNotFile) || errors.Is(err, os.ErrExist) {
		return nil // it has just been replaced, or its directory has
	}
	return err
}

func (c *workCopy) addFile(ctx context.Context, name string) (err error) {
	in, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if limit := max(minLarge, c.large[name]); info.Size() > limit {
		return fmt.Errorf("%s became larger than %d bytes while coven read it", name, limit)
	}
	if err := c.to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := c.to.Create(name, 0o600|info.Mode().Perm()&0o100)
	if err != nil {
		return err
	}
	return errors.Join(copyContent(ctx, out, io.LimitReader(in, info.Size())), out.Close()) // like git, without the end of a file that grows
}

// copyContent copies in parts, so that it can be interrupted.
func copyContent(ctx context.Context, to io.Writer, from io.Reader) error {
	const part = minLarge
	for {
		switch n, err := io.CopyN(to, from, part); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == part && ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

func (c *workCopy) addLink(name string) error {
	target, err := c.from.Readlink(name)
	if err != nil {
		return err
	}
	if err := c.to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return c.to.Symlink(target, name)
}

// addHead creates a repository that has the same commit checked out as the one in a directory, if there is one.
// git stores that commit for a submodule.
func (c *workCopy) addHead(dir string) error {
	if err := c.to.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	head := submodule.Head(c.ix.Worktree, dir)
	if head == "" {
		return nil
	}
	for _, sub := range []string{"objects", "refs"} {
		if err := c.to.MkdirAll(path.Join(dir, ".git", sub), 0o700); err != nil {
			return err
		}
	}
	out, err := c.to.Create(path.Join(dir, ".git/HEAD"), 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, head+"\n")
	return errors.Join(err, out.Close())
}

// maxAttributes is the size in bytes above which git ignores an attributes file.
const maxAttributes = 100 << 20

// addAttributes copies the attributes files that apply to the paths. Like git, it ignores links and files that it cannot
// read.
func (c *workCopy) addAttributes(ctx context.Context, paths []string) error {
	for _, dir := range dirsOf(paths) {
		name := path.Join(dir, ".gitattributes")
		st, err := c.from.Lstat(name)
		if err != nil || !file.IsRegular(st) || st.Size > maxAttributes {
			continue
		}
		c.large[name] = st.Size
		if err := c.add(ctx, name); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}
