// Package lock provides locks between processes and goroutines. Each lock is a file that names its holder.
// A lock lasts until the last process that has the file open ends, so that the git child of a killed coven
// still excludes others. The package also waits for the lock files of git.
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
	// Share is called with the path of each lock file that was created or locked, if it is not nil.
	Share func(path string)

	path   string
	queues sync.Map // of chan struct{}, by lock name: see Acquire
}

// Open returns the locks in a directory. Acquiring the first lock creates the directory.
func Open(path string) *Dir { return &Dir{path: path} }

// Acquire waits for a lock until ctx is done. The holder record shows operation, such as "land T", to other
// waiters.
func (d *Dir) Acquire(ctx context.Context, name, operation string) (*Lock, error) {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	// Only one goroutine at a time waits for the file, because a waiting goroutine occupies a thread.
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
	if d.Share != nil {
		d.Share(file.Name())
	}
	l := New(file, operation)
	l.leave = leave
	return l, nil
}

// Holder returns the holder of a lock. The bool reports whether the lock is held.
func (d *Dir) Holder(name string) (Holder, bool) { return HolderOf(filepath.Join(d.path, name)) }

// A Lock excludes other processes and other goroutines of this process.
type Lock struct {
	file   *lockedfile.File
	leave  func() // leaves the queue of this process; may be nil
	holder Holder // as written to the file
}

// New returns the Lock for a file that is already locked. The holder record shows operation to other
// waiters.
func New(file *lockedfile.File, operation string) *Lock {
	l := &Lock{file: file}
	l.sign(operation)
	return l
}

// Await waits for a lock until ctx is done. open must block until it has the lock. If Await fails, it calls
// failed after open has returned.
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
		go func() { // open cannot be interrupted; unlock the file when it returns
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

// Release releases the lock. It can only fail if the file was closed before, which is a programming error.
func (l *Lock) Release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
	if l.leave != nil {
		l.leave()
	}
}
