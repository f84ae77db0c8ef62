// Package lock provides locks that processes and goroutines share: one file each, which names its
// holder. A lock ends with the last process that has the file open, so that the git child of a killed
// coven still excludes others.
package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// A Dir is a directory of locks. It is safe for concurrent use.
type Dir struct {
	path   string
	queues sync.Map // of chan struct{}, by name: see Acquire
}

// Open returns the locks in a directory. The first lock creates the directory.
func Open(path string) *Dir { return &Dir{path: path} }

// Acquire waits for a lock until ctx is done. Others who wait see operation, such as "land T".
func (d *Dir) Acquire(ctx context.Context, name, operation string) (*Lock, error) {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	// Only one goroutine waits for the file, because each that does occupies a thread.
	value, _ := d.queues.LoadOrStore(name, make(chan struct{}, 1))
	queue := value.(chan struct{})
	select {
	case queue <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("lock %s: %w", name, context.Cause(ctx))
	}
	leave := func() { <-queue }
	file, err := Await(ctx, func() (*lockedfile.File, error) { return lockedfile.Edit(filepath.Join(d.path, name)) }, leave)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	l := New(file, operation)
	l.leave = leave
	return l, nil
}

// Holder returns the holder of a lock, if it is held.
func (d *Dir) Holder(name string) (Holder, bool) { return HolderOf(filepath.Join(d.path, name)) }

// A Lock excludes other processes and other goroutines of this one.
type Lock struct {
	file   *lockedfile.File
	leave  func() // leaves the queue of this process; nil if there is none
	holder Holder // as written to the file
}

// New returns the lock on a file that is locked. Others who wait see operation.
func New(file *lockedfile.File, operation string) *Lock {
	l := &Lock{file: file}
	l.sign(operation)
	return l
}

// Await waits for a lock until ctx is done. open returns when it has the lock. If Await fails, it calls
// failed once open is over.
func Await(ctx context.Context, open func() (*lockedfile.File, error), failed func()) (*lockedfile.File, error) {
	type result struct {
		file *lockedfile.File
		err  error
	}
	got := make(chan result, 1)
	go func() {
		file, err := open()
		got <- result{file, err}
	}()
	select {
	case res := <-got:
		if res.err != nil {
			failed()
		}
		return res.file, res.err
	case <-ctx.Done():
		go func() { // open cannot be interrupted: unlock when it returns
			if res := <-got; res.err == nil {
				_ = res.file.Close()
			}
			failed()
		}()
		return nil, context.Cause(ctx)
	}
}

// File returns the locked file, for a child process that shares the lock.
func (l *Lock) File() *os.File { return l.file.File }

// Release ends the lock. It fails only if the file was closed before, which is a programmer error.
func (l *Lock) Release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
	if l.leave != nil {
		l.leave()
	}
}
