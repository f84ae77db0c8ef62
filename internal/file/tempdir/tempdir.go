// Package tempdir provides a private directory for the lifetime of a process.
//
// The directory of a killed process is removed when another process creates
// a directory in the same parent. A directory that is not locked is abandoned.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	prefix   = "coven-"
	lockName = "lock"
)

// Dir is a private directory.
type Dir struct {
	path string
	lock *os.File
}

// New creates a directory in parent that only the user can enter.
func New(parent string) (*Dir, error) {
	Sweep(parent)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), os.RemoveAll(path))
	}
	return &Dir{path: path, lock: lock}, nil
}

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// Close removes the directory and everything in it.
func (d *Dir) Close() error { return errors.Join(Remove(d.path), d.lock.Close()) }

// lockDir locks the directory. The lock file is locked before it gets its name, so that no
// process sees it unlocked while its owner is alive.
func lockDir(path string) (*os.File, error) {
	f, err := os.CreateTemp(path, "new-")
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(f.Name(), filepath.Join(path, lockName)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sweep removes abandoned directories in parent. It ignores errors, because leftover
// directories are harmless.
func Sweep(parent string) { abandoned(parent, func(dir string) { _ = Remove(dir) }) }

// Abandoned lists the abandoned directories in parent.
func Abandoned(parent string) []string {
	var dirs []string
	abandoned(parent, func(dir string) { dirs = append(dirs, dir) })
	return dirs
}

// abandoned calls visit for each abandoned directory, while holding its lock.
func abandoned(parent string, visit func(dir string)) {
	locks, err := filepath.Glob(filepath.Join(parent, prefix+"*", lockName))
	if err != nil {
		return
	}
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // it belongs to another user, or it was removed
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			visit(filepath.Dir(name))
		}
		_ = f.Close()
	}
}

// Remove removes a directory with everything in it, including directories without write permission.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll reports leftovers
		}
		return nil
	})
	return os.RemoveAll(dir)
}
