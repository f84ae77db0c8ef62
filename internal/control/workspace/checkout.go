package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
			dirs, _ = supply.IgnoredDirs(context.Background(), r.Supplier()) // without the list, programs see less
			linked, _ := supply.UntrackedDirs(context.Background(), r.Supplier(), links)
			dirs = append(dirs, linked...)
			listed = time.Now()
		}
		return append(dirs[:len(dirs):len(dirs)], self, filepath.Join(r.Root, mcp.GatesDir), r.CheckoutFile())
	}
	go list() // while the worktree is created
	return list
}

// inWorktree returns the variables of a program of the task. Where those with search paths, such as PYTHONPATH, name a
// directory or file of the main checkout, they name that of the worktree: a program that read the other one would prove
// nothing about the change. Dependencies, which git ignores, stay those of the main checkout.
func (s *Workspace) inWorktree(user []string) []string {
	env := make([]string, len(user))
	for i, kv := range user {
		name, value, _ := strings.Cut(kv, "=")
		if env[i] = kv; !hasSearchPath(name) {
			continue
		}
		paths := filepath.SplitList(value)
		for j, path := range paths {
			paths[j] = s.ofWorktree(path)
		}
		env[i] = name + "=" + strings.Join(paths, string(filepath.ListSeparator))
	}
	return env
}

// hasSearchPath reports whether a variable has a list of places that programs read code from.
func hasSearchPath(name string) bool {
	return strings.HasSuffix(name, "PATH") && name != "GOPATH" || slices.Contains([]string{"PERL5LIB", "RUBYLIB", "GOWORK"}, name)
}

// ofWorktree returns the worktree's path for a path in the main checkout that exists in both.
func (s *Workspace) ofWorktree(path string) string {
	inside, ok := s.Sandbox.InCheckout(path)
	if !ok {
		return path
	}
	own := filepath.Join(s.Worktree.Path, inside)
	if _, err := os.Lstat(own); err != nil {
		return path
	}
	return own
}
