package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// A lock excludes other processes and other goroutines of this one.
type lock struct {
	file   *lockedfile.File
	queue  chan struct{} // of this process; nil: there is none
	holder Holder        // as signed
}

// lock waits for the named lock until ctx is done. what describes the operation to
// others who wait: "land T".
func (r *Repo) lock(ctx context.Context, name, what string) (*lock, error) {
	path := r.ours("locks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	// One goroutine waits for the file: each that does occupies a thread.
	queue := r.memo.queueFor(name)
	select {
	case queue <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("lock %s: %w", name, context.Cause(ctx))
	}
	file, err := awaitLock(ctx, func() (*lockedfile.File, error) { return lockedfile.Edit(path) }, func() { <-queue })
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	l := &lock{file: file, queue: queue}
	l.sign(what)
	return l, nil
}

// awaitLock waits for a lock until ctx is done. open returns when it has the lock; failed is
// called when it is over without one.
func awaitLock(ctx context.Context, open func() (*lockedfile.File, error), failed func()) (*lockedfile.File, error) {
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

// queueFor returns the queue of this process for a lock.
func (m *memo) queueFor(name string) chan struct{} {
	queue, _ := m.queues.LoadOrStore(name, make(chan struct{}, 1))
	return queue.(chan struct{})
}

// held returns the file that children inherit.
func (l *lock) held() *os.File { return l.file.File }

// release can fail only if the file was already closed, which is a programmer error.
func (l *lock) release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
	if l.queue != nil {
		<-l.queue
	}
}

// taskLock returns the name of one of 256 locks, which keeps the number of files
// small.
func taskLock(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "task-" + hex.EncodeToString(sum[:1])
}

const worktreesLock = "worktrees"

func targetLock(target Target) string { return "land-" + SafeName(target.Branch) }
