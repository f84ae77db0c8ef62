package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/files"
	"github.com/coven-run/coven/worktree/rescue"
)

// Uncommitted returns the paths that git status prints for a checkout, after any changes.
func TestUncommittedIsExact(t *testing.T) {
	r := sample(t)
	file := func(name string) string { return filepath.Join(r.Root, name) }
	want := func(state string) {
		t.Helper()
		var paths []string
		for line := range strings.Lines(gitIn(t, r.Root, "status", "--porcelain", "--no-renames") + "\n") {
			if name := strings.TrimSuffix(line[min(3, len(line)):], "\n"); name != "" && !files.IsCovens(name) {
				paths = append(paths, name)
			}
		}
		got := value[[]string](t)(files.Uncommitted(t.Context(), r))
		slices.Sort(got)
		slices.Sort(paths)
		equal(t, state, strings.Join(got, " "), strings.Join(paths, " "))
	}
	want("new")
	for _, step := range []struct {
		state string
		do    func()
	}{
		{"changed", func() { write(t, file("file0.txt"), "changed") }},
		{"new files", func() { write(t, file("new/a"), "a"); write(t, file("new/b"), "b"); write(t, file("dir/c"), "c") }},
		{"ignored", func() { write(t, file("build/x"), "x"); write(t, file("x.log"), "x") }},
		{"of coven", func() { write(t, file(".coven/x"), "x"); write(t, file(".beads/issues.jsonl"), "v2") }},
		{"staged", func() { gitIn(t, r.Root, "add", "file0.txt", "new/a") }},
		{"staged only", func() { gitIn(t, r.Root, "rm", "-q", "--cached", "file1.txt") }},
		{"committed", func() { gitIn(t, r.Root, "commit", "-qm", "some") }},
		{"mode", func() { must(t, os.Chmod(file("file2.txt"), 0o755)) }},
		{"gone", func() { must(t, os.RemoveAll(file("dir"))) }},
		{"a repository", func() { gitIn(t, r.Root, "init", "-q", "inner"); write(t, file("inner/x"), "x") }},
		{"moved", func() { gitIn(t, r.Root, "reset", "-q", "--soft", "HEAD~1") }},
		{"reset", func() { gitIn(t, r.Root, "reset", "-q", "--hard") }},
	} {
		step.do()
		want(step.state)
	}
}

// Staged content is stored if the worktree's index is split.
func TestSplitIndexIsStored(t *testing.T) {
	r := sample(t)
	w := add(t, r, "t")
	gitIn(t, w.Path, "update-index", "--split-index")
	write(t, filepath.Join(w.Path, "new.txt"), "staged\n")
	gitIn(t, w.Path, "add", "new.txt")
	write(t, filepath.Join(w.Path, "new.txt"), "changed since\n")
	if parts, err := filepath.Glob(filepath.Join(w.Admin, "sharedindex.*")); err != nil || len(parts) == 0 {
		t.Fatal("the index is not split")
	}
	stored, err := Remove(t.Context(), w, RemoveRequest{Note: "test"})
	must(t, err)
	equal(t, "in the worktree", rescued(t, r, stored, "new.txt"), "changed since")
	equal(t, "staged", rescued(t, r, stored, rescue.GitDirName+"/staged/0/new.txt"), "staged")
}
