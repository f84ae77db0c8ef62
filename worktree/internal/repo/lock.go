package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
)

// Lock waits for the named lock until ctx is done. Other waiters see operation, such as "land T".
func (r *Repo) Lock(ctx context.Context, name, operation string) (*lock.Lock, error) {
	return r.Locks.Acquire(ctx, name, operation)
}

// TaskLock returns the name of the lock for a task. There are only 256 such locks, which limits the number
// of files.
func TaskLock(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "task-" + hex.EncodeToString(sum[:1])
}

// WorktreesLock is the name of the lock on the list of worktrees.
const WorktreesLock = "worktrees"

// TargetLock returns the name of the lock on a target.
func TargetLock(target Target) string { return "land-" + names.SafeName(target.Branch) }
