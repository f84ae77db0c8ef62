package search

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// Files of an index, in its directory below Options.Cache.
const (
	storeFile = "index"
	lockFile  = "lock"
	rootFile  = "root" // contains the path of the root
)

// unused is how long an index is kept after its last use.
const unused = 30 * 24 * time.Hour

// with calls use with the index on disk. After an error it retries with a new index, and if
// that fails, too, it uses an index in memory.
func (x *Index) with(ctx context.Context, use func(*store) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.Cache != "" && x.memory == nil {
		if err := x.withCache(ctx, use); !isStoreError(err) {
			return err
		}
	}
	if x.memory == nil {
		x.memory = &store{manifest: emptyManifest()}
	}
	return use(x.memory)
}

func isStoreError(err error) bool {
	_, is := errors.AsType[storeError](err)
	return is
}

func (x *Index) withCache(ctx context.Context, use func(*store) error) error {
	dir := filepath.Join(x.Cache, "search", fmt.Sprintf("%x", sha256.Sum256([]byte(x.Root)))[:32])
	if err := makeDir(dir); err != nil {
		return storeError{err}
	}
	if err := onlyFiles(dir); err != nil {
		return storeError{err}
	}
	unlock, err := lock(ctx, filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer unlock()
	err = x.withFile(dir, use)
	if isStoreError(err) && discard(dir) == nil {
		err = x.withFile(dir, use)
	}
	return err
}

// makeDir creates the directory of an index. It removes a file or symbolic link in its place.
func makeDir(dir string) error {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o700)
}

// onlyFiles removes everything but regular files from the directory of an index: opening a pipe would block,
// and a link leads outside.
func onlyFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func (x *Index) withFile(dir string, use func(*store) error) error {
	file := filepath.Join(dir, storeFile)
	if _, err := os.Lstat(file); err != nil {
		if err := discard(dir); err != nil { // files of other versions of coven
			return storeError{err}
		}
		if err := replace(filepath.Join(dir, rootFile), []byte(x.Root)); err != nil {
			return storeError{err}
		}
		x.prune(filepath.Dir(dir), dir)
	}
	s, err := openStore(file)
	if err != nil {
		return err
	}
	now := x.Now()
	_ = os.Chtimes(filepath.Join(dir, rootFile), now, now) // the time of the last use
	return use(s)
}

// discard removes an index, including files of other versions of coven. It keeps the lock, which the
// caller holds, and the path of the root.
func discard(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockFile && e.Name() != rootFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// prune removes indexes that were not used for long or whose root is gone. The
// directory and its lock remain, so that no two processes use different locks.
func (x *Index) prune(all, own string) {
	entries, _ := os.ReadDir(all) // cached data that cannot be listed is kept
	for _, e := range entries {
		dir := filepath.Join(all, e.Name())
		if e.IsDir() && dir != own && x.isStale(filepath.Join(dir, rootFile)) {
			_ = discardUnused(dir)
		}
	}
}

// maxRootFile is more than a path may have, in bytes.
const maxRootFile = 8 << 10

func (x *Index) isStale(rootFile string) bool {
	info, err := os.Lstat(rootFile)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	root, err := regularfile.Read(rootFile, maxRootFile)
	if err != nil {
		return false
	}
	_, err = os.Lstat(string(root))
	return errors.Is(err, os.ErrNotExist) || x.Now().Sub(info.ModTime()) > unused
}

// discardUnused removes an index unless a process uses it.
func discardUnused(dir string) error {
	unlock, err := tryLock(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(discard(dir), os.Remove(filepath.Join(dir, rootFile)))
}

// lock acquires a lock. It waits until ctx ends.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	got := make(chan result, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(file).Lock()
		got <- result{unlock, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return nil, storeError{r.err}
		}
		return r.unlock, nil
	case <-ctx.Done():
		go func() {
			if r := <-got; r.err == nil {
				r.unlock()
			}
		}()
		return nil, context.Cause(ctx)
	}
}
