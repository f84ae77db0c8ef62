package worktree

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/isolation"
)

// BenchmarkIsolate measures Begin with TakeCommits in a repository of 200 files and 100 tags: the first
// time, which creates the private common directory; later, without new commits of the agent; and after a
// commit. The floor is a git command that reads one ref.
func BenchmarkIsolate(b *testing.B) {
	r := sample(b)
	for i := range 200 {
		write(b, filepath.Join(r.Root, fmt.Sprintf("many/%d.txt", i)), "x\n")
	}
	gitIn(b, r.Root, "add", "-A")
	gitIn(b, r.Root, "commit", "-qm", "many")
	for i := range 100 {
		gitIn(b, r.Root, "tag", fmt.Sprint("v", i))
	}
	gitIn(b, r.Root, "pack-refs", "--all")
	w := add(b, r, "T")
	both := func(b *testing.B, between func()) {
		must(b, isolation.Begin(b.Context(), w))
		between()
		must(b, isolation.TakeCommits(b.Context(), w))
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			must(b, isolation.SetAsidePrivate(w, isolation.PrivatePath(w)))
			b.StartTimer()
			both(b, func() {})
		}
	})
	b.Run("later", func(b *testing.B) {
		for b.Loop() {
			both(b, func() {})
		}
	})
	b.Run("commit", func(b *testing.B) {
		for b.Loop() {
			both(b, func() {
				b.StopTimer()
				gitIn(b, w.Path, "commit", "-qm", "agent", "--allow-empty")
				b.StartTimer()
			})
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			must(b, exec.CommandContext(b.Context(), "git", "--git-dir="+r.GitDir, "show-ref", "--verify", "--hash", "refs/heads/main").Run())
		}
	})
}
