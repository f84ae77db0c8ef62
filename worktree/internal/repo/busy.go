package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
)

// A BusyError means that a lock file of git exists: another git process is running in the repository, or
// was killed. Nothing was changed. coven never removes such a file.
type BusyError struct {
	File   string
	Age    time.Duration // since File was created
	Others []string      // further lock files of the same transaction
}

// Files returns all lock files.
func (e *BusyError) Files() []string { return append([]string{e.File}, e.Others...) }

func (e *BusyError) Error() string { return e.Reason() + "; next: " + e.Next() }

// Reason describes the lock files.
func (e *BusyError) Reason() string {
	return fmt.Sprintf("another git process has held %s for %v", e.File, e.Age.Round(time.Second))
}

// Next returns the instruction that removes the lock files.
func (e *BusyError) Next() string {
	command := "rm"
	for _, file := range e.Files() {
		command += " " + shellword.Quote(file)
	}
	return "end that process, or if there is none: " + command
}

const (
	// lockWait limits the time to wait for a lock of another git process.
	lockWait = 5 * time.Second
	// transactTries limits how often a transaction is repeated because of short-lived locks.
	transactTries = 3
)

// AwaitGone waits for another git process to remove its lock file.
func AwaitGone(ctx context.Context, file string) error {
	deadline := time.NewTimer(lockWait)
	defer deadline.Stop()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		info, err := os.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for a lock: %w", err)
		}
		select {
		case <-time.After(pause):
		case <-deadline.C:
			return &BusyError{File: file, Age: Age(info)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Transact applies all ref edits or none. If another git process does not release a lock, the error is a
// *BusyError.
func (r *Repo) Transact(ctx context.Context, g git.Repo, message string, edits ...git.Edit) error {
	var refs []string
	deletes := false
	for _, e := range edits {
		refs = append(refs, e.Ref())
		deletes = deletes || e.Deletes()
	}
	if err := r.LogRefs(edits...); err != nil {
		return fmt.Errorf("%s: %w", message, err)
	}
	var err error
	for range transactTries {
		start := time.Now()
		if err = g.Transact(ctx, message, edits...); err == nil {
			r.LogDone(edits)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		busy := r.refLocks(ctx, refs, deletes)
		if len(busy) == 0 {
			return err // failed for another reason
		}
		if old, held := heldSince(busy, start); held {
			return fmt.Errorf("%s: %w", message, old)
		}
	}
	return err
}

// Explain is for git commands that change refs themselves. If another git process holds a lock, it replaces
// their error with a *BusyError.
func (r *Repo) Explain(ctx context.Context, err error, refs ...string) error {
	for _, busy := range r.refLocks(ctx, refs, true) {
		return busy
	}
	return err
}

// refLocks lists the existing lock files that could block a transaction.
func (r *Repo) refLocks(ctx context.Context, refs []string, deletes bool) []*BusyError {
	var names []string
	for _, ref := range refs {
		names = append(names, ref+".lock")
	}
	if deletes {
		names = append(names, "packed-refs.lock")
	}
	if head, err := r.HeadOf(ctx, r.GitDir); err == nil && slices.Contains(refs, head) {
		names = append(names, "HEAD.lock") // git also writes the reflog of HEAD
	}
	var found []*BusyError
	for _, name := range names {
		file := filepath.Join(r.GitDir, name)
		if info, err := os.Lstat(file); err == nil {
			found = append(found, &BusyError{File: file, Age: Age(info)})
		}
	}
	return found
}

// heldSince returns those of the locks that already existed at start, as one error.
func heldSince(locks []*BusyError, start time.Time) (*BusyError, bool) {
	var held *BusyError
	for _, lock := range locks {
		switch {
		case lock.Age < time.Since(start):
		case held == nil:
			held = lock
		default:
			held.Others = append(held.Others, lock.File)
		}
	}
	return held, held != nil
}

// Age returns the time since the last modification of a file.
func Age(info fs.FileInfo) time.Duration { return time.Since(info.ModTime()) }
