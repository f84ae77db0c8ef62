package worktree

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// Checkouts are the main checkout, those of users, and those of tasks. A mere claim in a file of the git
// directory does not make one.
func TestCheckouts(t *testing.T) {
	r := sample(t)
	side := filepath.Join(t.TempDir(), "side")
	gitIn(t, r.Root, "worktree", "add", "-q", "--detach", side)
	gone := filepath.Join(t.TempDir(), "gone")
	gitIn(t, r.Root, "worktree", "add", "-q", "--detach", gone)
	write(t, filepath.Join(gone, ".git"), "gitdir: "+filepath.Join(r.GitDir, "worktrees", "side")+"\n")
	w := add(t, r, "t")
	stranger := t.TempDir()
	for name, gitdir := range map[string]string{
		"empty": "", "nowhere": "/none/.git\n", "root": "/.git\n", "main": filepath.Join(r.Root, ".git") + "\n",
		"stranger": filepath.Join(stranger, ".git") + "\n",
	} {
		write(t, filepath.Join(r.GitDir, "worktrees", name, "gitdir"), gitdir)
	}
	write(t, filepath.Join(stranger, ".git"), "gitdir: elsewhere\n")
	piped := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(piped, ".git"), 0o600))
	write(t, filepath.Join(r.GitDir, "worktrees", "piped", "gitdir"), filepath.Join(piped, ".git")+"\n")
	huge := t.TempDir()
	write(t, filepath.Join(huge, ".git"), "gitdir: "+filepath.Join(r.GitDir, "worktrees", "huge")+"\n")
	must(t, os.Truncate(filepath.Join(huge, ".git"), 3<<30))
	write(t, filepath.Join(r.GitDir, "worktrees", "huge", "gitdir"), filepath.Join(huge, ".git")+"\n")
	write(t, filepath.Join(r.GitDir, "worktrees", "hugedir", "gitdir"), filepath.Join(huge, ".git")+"\n")
	must(t, os.Truncate(filepath.Join(r.GitDir, "worktrees", "hugedir", "gitdir"), 3<<30))
	allocated := allocations()
	got, err := r.Checkouts()
	if grown := allocations() - allocated; grown > 100<<20 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
	must(t, err)
	want := []string{r.Root, side, w.Path}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// allocations returns the bytes that the process has allocated so far.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
