package rescue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// GitDirName is the name of a .git in a rescue.
const GitDirName = ".git.coven-rescue"

// HiddenFiles are files that a snapshot omits.
type HiddenFiles struct {
	Plain   []string          // paths in the worktree
	Renamed map[string]string // path in the rescue -> absolute path of the file
}

// FindHidden finds the ignored files, except those that hold no work, and the nested git directories in a worktree, and
// applies the policy to them. The worktree must be staged in the index.
func FindHidden(ctx context.Context, w *repo.Worktree, ix *content.Index, p Policy) (HiddenFiles, error) {
	fields, err := ix.Git.Fields(ctx, "ls-files", "-z", "-o", "-i", "--exclude-standard")
	if err != nil {
		return HiddenFiles{}, err
	}
	l, err := ix.List(ctx, content.WithoutIgnored)
	if err != nil {
		return HiddenFiles{}, err
	}
	found := HiddenFiles{Renamed: map[string]string{}}
	except, err := content.ReadExceptions(w)
	if err != nil {
		return HiddenFiles{}, err
	}
	caches := regenerable{w: w, tags: map[string]bool{}}
	for _, name := range append(fields, l.LeftFiles...) {
		if slices.Contains(except.Links, name) || caches.has(name) {
			continue // it leads to the main checkout, or holds no work
		}
		if dir, isDir := strings.CutSuffix(name, "/"); isDir {
			l.Nested = append(l.Nested, dir)
		} else if !copied(w, name) {
			found.Plain = append(found.Plain, name)
		}
	}
	for _, dir := range l.Nested {
		if err := found.addBelow(filepath.Join(w.Path, dir), dir); err != nil {
			return found, err
		}
	}
	if err := found.addGitDirs(w); err != nil {
		return found, err
	}
	if w.Admin != "" {
		if err := found.AddModules(w, filepath.Join(w.Admin, submodule.ModulesDir), GitDirName+"/modules"); err != nil {
			return found, err
		}
	}
	return limit(ctx, w, ix, l.LeftOut, found, p)
}

// copied reports whether the main checkout has the same file, so that it is probably a copy.
func copied(w *repo.Worktree, name string) bool {
	here, err := file.Open(filepath.Join(w.Path, name), IncludeCap)
	if err != nil {
		return false
	}
	defer func() { _ = here.Close() }()
	there, err := file.Open(filepath.Join(w.Repo.Root, name), IncludeCap)
	if err != nil {
		return false
	}
	defer func() { _ = there.Close() }()
	return sameContent(here, there)
}

// sameContent reports whether the remaining content of two files is the same.
func sameContent(a, b io.Reader) bool {
	const chunk = 64 << 10
	left, right := make([]byte, chunk), make([]byte, chunk)
	for {
		n, errA := io.ReadFull(a, left)
		m, errB := io.ReadFull(b, right)
		if !bytes.Equal(left[:n], right[:m]) || isReadError(errA) || isReadError(errB) {
			return false
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil
		}
	}
}

// isReadError reports whether err is an error other than the end of the file.
func isReadError(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// addGitDirs adds everything named .git in the worktree, except the link at its top and the links of
// submodules that borrow all of their content.
func (h *HiddenFiles) addGitDirs(w *repo.Worktree) error {
	top := w.Path
	return filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !file.IsGitDir(entry.Name()) {
			return err
		}
		relative, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if err := h.addBelow(name, filepath.ToSlash(relative)); err != nil {
				return err
			}
			return fs.SkipDir
		}
		if entry.Type().IsRegular() && relative != ".git" && !linksBorrower(w, name) {
			h.Renamed[replaceGitNames(filepath.ToSlash(relative))] = name
		}
		return nil
	})
}

// addBelow adds the files in a directory. It adds nothing if root is not a directory.
func (h *HiddenFiles) addBelow(root, as string) error {
	info, err := os.Lstat(root)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nothing to add
	}
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if kind := entry.Type(); !kind.IsRegular() && kind != fs.ModeSymlink {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		h.Renamed[replaceGitNames(path.Join(as, filepath.ToSlash(relative)))] = name
		return err
	})
}

// replaceGitNames replaces path elements that git refuses to store.
func replaceGitNames(p string) string {
	elements := strings.Split(p, "/")
	for i, element := range elements {
		if file.IsGitDir(element) {
			elements[i] = GitDirName
		}
	}
	return strings.Join(elements, "/")
}

// limit applies the policy for ignored files, and those left out of the change, above the size limit.
func limit(ctx context.Context, w *repo.Worktree, ix *content.Index, left []content.LeftOut, found HiddenFiles, p Policy) (HiddenFiles, error) {
	total := int64(0)
	for _, name := range found.Plain {
		total += size(filepath.Join(w.Path, name))
	}
	for _, name := range found.Renamed {
		total += size(name)
	}
	if total <= MaxIgnored || p == KeepIgnored {
		return found, nil
	}
	if p == DropIgnored {
		return HiddenFiles{}, nil
	}
	names, err := ix.Git.Fields(ctx, "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
	if err != nil {
		return found, err
	}
	for _, out := range left {
		names = append(names, out.Path)
	}
	if len(found.Renamed) > 0 {
		names = append(names, "git directories inside the worktree")
	}
	return found, &IgnoredError{Files: names, Bytes: total}
}

func size(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// TakeAs adds files to an index under different names.
func TakeAs(ctx context.Context, ix *content.Index, files map[string]string) error {
	entries, err := blobs(ctx, ix.Worktree, ix.Git, files)
	if err != nil {
		return err
	}
	return ix.Put(ctx, entries)
}

// blobs stores the unconverted content of files and symbolic links of a worktree: path of the entry -> absolute path.
func blobs(ctx context.Context, w *repo.Worktree, g git.Repo, files map[string]string) ([]object.Entry, error) {
	if err := content.CheckLarge(files); err != nil {
		return nil, err
	}
	var entries []object.Entry
	for as, name := range files {
		e, err := blobOf(ctx, w, g, name)
		if file.Missing(err) || errors.Is(err, regularfile.ErrNotFile) {
			continue // it has just been removed or replaced
		}
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
		e.Path = as
		entries = append(entries, e)
	}
	return entries, nil
}

// blobOf stores the unconverted content of a file or symbolic link.
func blobOf(ctx context.Context, w *repo.Worktree, g git.Repo, name string) (object.Entry, error) {
	top, name := agentsTop(w, name)
	root, err := file.OpenRoot(top)
	if err != nil {
		return object.Entry{}, err
	}
	defer func() { _ = root.Close() }()
	st, err := root.Lstat(name)
	if err != nil {
		return object.Entry{}, err
	}
	e := object.Entry{Mode: "100644"}
	if file.IsLink(st) {
		e.Mode = "120000"
		target, err := root.Readlink(name)
		if err != nil {
			return e, err
		}
		e.Oid, err = g.Blob(ctx, []byte(target))
		return e, err
	}
	in, err := root.Open(name)
	if err != nil {
		return e, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return e, err
	}
	if info.Size() > content.MaxStored {
		return e, &regularfile.SizeError{Max: content.MaxStored}
	}
	if info.Mode().Perm()&0o100 != 0 {
		e.Mode = "100755"
	}
	e.Oid, err = g.BlobOf(ctx, in)
	return e, err
}

// agentsTop returns the directory below which an agent may replace the parents of a file by links, and the name of the
// file in it: the worktree or its git directory. The parents of other files belong to the user.
func agentsTop(w *repo.Worktree, name string) (top, inside string) {
	for _, top := range []string{w.Path, w.Admin} {
		if inside, below := strings.CutPrefix(name, top+"/"); below && top != "" {
			return top, filepath.ToSlash(inside)
		}
	}
	return filepath.Dir(name), filepath.Base(name)
}

// IncludeCap limits the total size of the ignored files that are copied to a worktree, in bytes.
const IncludeCap = 100 << 20

// AddModules adds the git directories of submodules in a directory, except those that borrow all of their
// content.
func (h *HiddenFiles) AddModules(w *repo.Worktree, dir, as string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, statErr := os.Lstat(dir); statErr != nil || !info.IsDir() {
		return nil //nolint:nilerr // a link or a file does not belong to the worktree
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name, inside := filepath.Join(dir, entry.Name()), path.Join(as, entry.Name())
		isGit := file.Exists(filepath.Join(name, "HEAD"))
		switch {
		case !entry.IsDir():
			h.Renamed[replaceGitNames(inside)] = name
		case isGit && submodule.Borrows(w, name):
			err = h.AddModules(w, filepath.Join(name, submodule.ModulesDir), path.Join(inside, submodule.ModulesDir))
		case isGit:
			err = h.addBelow(name, inside)
		default: // the name of a submodule may contain slashes
			err = h.AddModules(w, name, inside)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linksBorrower reports whether a file named .git links a submodule to a git directory that borrows all of
// its content.
func linksBorrower(w *repo.Worktree, name string) bool {
	dir, ok := submodule.Dir(filepath.Dir(name))
	return ok && strings.HasPrefix(filepath.Clean(dir), filepath.Join(w.Admin, submodule.ModulesDir)+"/") && submodule.Borrows(w, dir)
}
