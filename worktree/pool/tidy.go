package pool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// errUnusualMetadata means that a parked file has properties that git neither creates nor compares.
var errUnusualMetadata = errors.New("a file has hard links or permissions that git does not create")

// tidying moves away everything that is not a file of a tree.
type tidying struct {
	top     string
	keep    []string
	tracked map[string]bool // files and their parent directories
	away    func(name string) (string, error)
	mask    fs.FileMode // permissions that new files do not get
	moved   int         // number of paths that were moved away
	kept    int         // number of untracked files and directories that were kept
}

// tidied removes everything from a directory except the files of a tree and those that the pool keeps. It
// moves the rest to the paths that aside returns, or to the trash if aside is nil.
func tidied(ctx context.Context, w *repo.Worktree, tree, dir string, aside func(string) string) (*tidying, error) {
	entries, err := w.Repo.Git().Entries(ctx, tree)
	if err != nil {
		return nil, err
	}
	files := &tidying{top: dir, keep: w.Repo.Pool.Keep, tracked: map[string]bool{".": true, ".git": aside == nil}}
	for _, e := range entries {
		for name := e.Path; !files.tracked[name]; name = path.Dir(name) {
			files.tracked[name] = true
		}
	}
	if files.mask, err = newFileMask(w.Repo); err != nil {
		return nil, err
	}
	if aside != nil {
		files.keep = nil
		files.away = func(name string) (string, error) { return aside(name), nil }
	} else {
		files.away = trashed(w.Repo, dir, w.Name)
	}
	return files, files.dir(".")
}

// trashed returns a function that returns new paths in a new trash directory for files of top.
func trashed(r *repo.Repo, top, name string) func(string) (string, error) {
	dir, n := trashName(r, top, name), 0
	return func(string) (string, error) {
		n++
		return filepath.Join(dir, strconv.Itoa(n)), nil
	}
}

// defaultACL is the attribute of a directory on Linux that has the permissions of new files in it, whatever the umask.
const defaultACL = "system.posix_acl_default"

// dir tidies a directory that contains tracked files.
func (f *tidying) dir(name string) error {
	dir, err := os.Open(filepath.Join(f.top, name))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // read only
	if _, err := unix.Fgetxattr(int(dir.Fd()), defaultACL, nil); err == nil {
		return errUnusualMetadata
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		inside := path.Join(name, entry.Name())
		if !f.tracked[inside] {
			if _, err := f.moveUntracked(inside, entry); err != nil {
				return err
			}
			continue
		}
		if err := f.checkMetadata(dir, inside); err != nil {
			return err
		}
		if entry.IsDir() {
			if err := f.dir(inside); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMetadata checks the properties of a tracked path that git does not compare: hard links and permissions.
func (f *tidying) checkMetadata(dir *os.File, name string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), path.Base(name), &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	mask, mode := uint32(f.mask), uint32(info.Mode)&0o7777 //nolint:unconvert // 16 bits on macOS
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if want := 0o777 &^ mask; mode != want {
			return os.Chmod(filepath.Join(f.top, name), fs.FileMode(want))
		}
	case unix.S_IFREG:
		if info.Nlink != 1 || mode != 0o666&^mask && mode != 0o777&^mask {
			return errUnusualMetadata
		}
	}
	return nil
}

// moveUntracked moves an untracked path away, except for files below it that are kept. It reports whether there are
// any.
func (f *tidying) moveUntracked(name string, entry fs.DirEntry) (kept bool, err error) {
	if slices.ContainsFunc(f.keep, func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, name) }) {
		f.kept++
		return true, nil
	}
	if entry.IsDir() && len(f.keep) > 0 {
		below, err := os.ReadDir(filepath.Join(f.top, name))
		if err != nil {
			return false, err
		}
		for _, b := range below {
			here, err := f.moveUntracked(path.Join(name, b.Name()), b)
			if kept = kept || here; err != nil {
				return kept, err
			}
		}
		if kept {
			return true, nil
		}
	}
	to, err := f.away(name)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return false, err
	}
	f.moved++
	return false, os.Rename(filepath.Join(f.top, name), to)
}

// newFileMask returns the permission bits that new files do not get.
func newFileMask(r *repo.Repo) (fs.FileMode, error) {
	file, err := os.OpenFile(filepath.Join(r.StatePath(), "mask"), os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o777)
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is created again each time
	defer file.Close()           //nolint:errcheck // nothing is written
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return 0o777 &^ info.Mode().Perm(), nil
}
