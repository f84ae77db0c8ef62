package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/coven-run/coven/worktree/internal/lock"
)

// lock waits for the named lock until ctx is done. what describes the operation to
// others who wait: "land T".
func (r *Repo) lock(ctx context.Context, name, what string) (*lock.Lock, error) {
	return r.locks.Acquire(ctx, name, what)
}

// taskLock returns the name of one of 256 locks, which keeps the number of files
// small.
func taskLock(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "task-" + hex.EncodeToString(sum[:1])
}

const worktreesLock = "worktrees"

func targetLock(target Target) string { return "land-" + SafeName(target.Branch) }
