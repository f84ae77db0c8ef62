package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
)

// CheckNotMounted returns an error if a file system is mounted at or below a path. Removing the directory
// would delete the user's files in it.
func CheckNotMounted(path string) error {
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	found, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // without /proc, mounts are unknown
	case err != nil:
		return fmt.Errorf("look for mounts: %w", err)
	case len(found) > 0:
		return fmt.Errorf("something is mounted at %s: unmount it first", found[0].Mountpoint)
	}
	return nil
}

// RemoveAll is like os.RemoveAll, but also removes read-only directories, such as Go's module cache. It
// fails if a file system is mounted there.
func RemoveAll(path string) error {
	if err := CheckNotMounted(path); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	return errors.Join(makeWritable(root, filepath.Base(path)), os.RemoveAll(path))
}

// makeWritable makes a directory and those in it writable. It changes nothing outside of root, also if a
// directory becomes a link meanwhile.
func makeWritable(root *os.Root, dir string) error {
	if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
		return err
	}
	if err := root.Chmod(dir, 0o700); err != nil {
		return err
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	err = errors.Join(err, f.Close())
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, makeWritable(root, filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
