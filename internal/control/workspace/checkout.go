package workspace

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/supply"
)

// sharedAge is the age at which the list of shared directories is made again.
const sharedAge = 30 * time.Second

// SharedOf returns a function that returns the paths in the main checkout that programs of tasks can read: its ignored
// directories, the untracked ones among links, coven's executable, which is self, and the files by which coven finds the
// checkout, and finds that an agent has started it. It returns nil for a bare repository.
func SharedOf(r *worktree.Repo, self string, links []string) func() []string {
	if r.Bare {
		return nil
	}
	var mu sync.Mutex
	var dirs []string
	var listed time.Time
	list := func() []string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(listed) > sharedAge {
			dirs, _ = supply.IgnoredDirs(context.Background(), r) // without the list, programs see less
			linked, _ := supply.UntrackedDirs(context.Background(), r, links)
			dirs = append(dirs, linked...)
			listed = time.Now()
		}
		return append(dirs[:len(dirs):len(dirs)], self, filepath.Join(r.Root, mcp.GatesDir), r.CheckoutFile())
	}
	go list() // while the worktree is created
	return list
}
