package workspace

import (
	"context"
	"sync"
	"time"

	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/supply"
)

// sharedAge is the age at which the list of shared directories is made again.
const sharedAge = 30 * time.Second

// SharedOf returns a function that returns the paths in the main checkout that programs of tasks can read: its ignored
// directories and coven's executable, which is self. It returns nil for a bare repository.
func SharedOf(r *worktree.Repo, self string) func() []string {
	if r.Bare {
		return nil
	}
	var mu sync.Mutex
	var dirs []string
	var listed time.Time
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(listed) > sharedAge {
			dirs, _ = supply.Shared(context.Background(), r) // without the list, programs see less
			listed = time.Now()
		}
		return append(dirs[:len(dirs):len(dirs)], self)
	}
}
