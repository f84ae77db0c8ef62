package task

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// lock prevents other coven processes from changing the file until unlock is called.
// It waits until ctx is done.
func (f *File) lock(ctx context.Context) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	got := make(chan result, 1)
	go func() {
		unlock, err := f.acquire()
		got <- result{unlock, err}
	}()
	select {
	case r := <-got:
		return r.unlock, r.err
	case <-ctx.Done():
		go func() {
			if r := <-got; r.err == nil {
				r.unlock()
			}
		}()
		return nil, ctx.Err()
	}
}

// acquire locks the lock file, which works on every file system, and then the
// directory of the tasks, which covers other repositories that share it by BEADS_DIR
// but have other lock files.
func (f *File) acquire() (func(), error) {
	name, err := f.lockName()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.lockDir, 0o755); err != nil {
		return nil, err
	}
	release, err := lockedfile.MutexAt(filepath.Join(f.lockDir, name)).Lock()
	if err != nil {
		return nil, err
	}
	dir, err := lockDirectory(filepath.Dir(f.path))
	if err != nil {
		release()
		return nil, err
	}
	return func() {
		if dir != nil {
			_ = dir.Close() // read only; closing releases the lock
		}
		release()
	}, nil
}

// lockName returns the name of the lock file. It is the same for all paths of a file.
func (f *File) lockName() (string, error) {
	path, err := f.target()
	if errors.Is(err, fs.ErrNotExist) {
		path, err = filepath.Abs(f.path) // its directory does not exist either
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return fmt.Sprintf("tasks-%x.lock", sum[:8]), nil
}

// lockDirectory locks a directory. It returns nil if the directory does not exist, or
// if its file system does not support such locks, like some network file systems.
func lockDirectory(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
	}
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, syscall.EBADF), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOLCK):
		return nil, dir.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), dir.Close())
}
