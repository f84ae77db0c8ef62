package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// transactTries limits how often a transaction is repeated because of short-lived locks.
const transactTries = 3

// Transact applies all ref edits or none. If another git process does not release a lock, the error is a
// *BusyError.
func (r *Repo) Transact(ctx context.Context, g git.Repo, message string, edits ...ref.Edit) error {
	var refs []string
	deletes := false
	for _, e := range edits {
		refs = append(refs, e.Ref())
		deletes = deletes || e.Deletes()
	}
	if err := r.RefLog().Begin(edits...); err != nil {
		return fmt.Errorf("%s: %w", message, err)
	}
	var err error
	for range transactTries {
		start := time.Now()
		if err = g.Transact(ctx, message, edits...); err == nil {
			r.RefLog().Done(edits)
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
func (r *Repo) refLocks(ctx context.Context, refs []string, deletes bool) []*lock.BusyError {
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
	var found []*lock.BusyError
	for _, name := range names {
		file := filepath.Join(r.GitDir, name)
		if info, err := os.Lstat(file); err == nil {
			found = append(found, &lock.BusyError{File: file, Age: lock.Age(info)})
		}
	}
	return found
}

// heldSince returns those of the locks that already existed at start, as one error.
func heldSince(locks []*lock.BusyError, start time.Time) (*lock.BusyError, bool) {
	var held *lock.BusyError
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
