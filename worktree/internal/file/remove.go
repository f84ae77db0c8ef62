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
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(path))
}
