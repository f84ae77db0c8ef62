package worktree

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// sorted returns a listing as text.
func (l listing) sorted() string {
	text := ""
	for _, paths := range [][]string{l.stale, l.untracked, l.nested, l.entries, l.links, l.vivid} {
		paths = slices.Clone(paths)
		slices.Sort(paths)
		text += fmt.Sprintf("%q\n", slices.Compact(paths))
	}
	return text
}

// sameListing compares what list finds with what git finds, and reports whether list looked at the
// files itself.
func sameListing(t *testing.T, w *repo.Worktree, kept string) bool {
	t.Helper()
	ctx := t.Context()
	g := w.Git()
	if kept == snapshotIndex {
		g = value[git.Repo](t)(rawGit(w))
	}
	ix := value[*index](t)(openIndex(w, g, kept))
	defer ix.drop()
	for _, option := range []string{withoutIgnored, withIgnored} {
		want := value[listing](t)(ix.listAll(ctx, option))
		got := value[listing](t)(ix.list(ctx, option))
		if got.sorted() != want.sorted() {
			t.Fatalf("%s, %s: git has\n%swe have\n%s", kept, option, want.sorted(), got.sorted())
		}
	}
	_, err := ix.git.Glance(unconverting(ctx, w.Repo))
	return err == nil
}

// A listing is what git lists, whatever agents do.
func TestListingsAreExact(t *testing.T) {
	oneAtATime(t)
	alone := 0
	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := &doomedCase{t: t, random: rand.New(rand.NewPCG(seed, 18)), dir: value[string](t)(filepath.EvalSymlinks(t.TempDir())), exported: map[string]map[string]item{}}
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(c.script, "\n"))
				}
			}()
			c.makeRepository()
			c.makeWork()
			for range 3 {
				c.edit(3)
				for _, kept := range []string{commitIndex, snapshotIndex} {
					if exists(c.w.StatePath(kept)) && sameListing(t, c.w, kept) {
						alone++
					}
				}
				_, _ = CurrentTree(t.Context(), c.w) // it keeps an index
			}
		})
	}
	if alone < 10 {
		t.Errorf("git listed all files but %d times", alone)
	}
}

// Uncommitted has what git status prints of a checkout, whatever is done to it.
func TestUncommittedIsExact(t *testing.T) {
	r := sample(t)
	file := func(name string) string { return filepath.Join(r.Root, name) }
	want := func(state string) {
		t.Helper()
		var paths []string
		for line := range strings.Lines(gitIn(t, r.Root, "status", "--porcelain", "--no-renames") + "\n") {
			if name := strings.TrimSuffix(line[min(3, len(line)):], "\n"); name != "" && !isCovens(name) {
				paths = append(paths, name)
			}
		}
		got := value[[]string](t)(Uncommitted(t.Context(), r))
		slices.Sort(got)
		slices.Sort(paths)
		equal(t, state, strings.Join(got, " "), strings.Join(paths, " "))
	}
	seen := func() bool {
		g := r.RootGit()
		_, ok := glanceCheckout(t.Context(), r, g)
		return ok
	}
	want("new")
	equal(t, "it is compared here", seen(), true)
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

// A file that git would have written in another way is not overlooked where that matters.
func TestGlanceExactly(t *testing.T) {
	r := sample(t)
	for name, change := range map[string]func(w *repo.Worktree){
		"a second name": func(w *repo.Worktree) {
			must(t, os.Link(filepath.Join(w.Path, "file2.txt"), filepath.Join(r.Root, "second.log")))
		},
		"permissions":       func(w *repo.Worktree) { must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o600)) },
		"set user ID":       func(w *repo.Worktree) { must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o644|os.ModeSetuid)) },
		"of the top":        func(w *repo.Worktree) { must(t, os.Chmod(w.Path, 0o700)) },
		"of a directory":    func(w *repo.Worktree) { must(t, os.Chmod(filepath.Join(w.Path, "dir"), 0o700)) },
		"a git directory":   func(w *repo.Worktree) { write(t, filepath.Join(w.Path, "dir", ".git", "HEAD"), "x") },
		"nothing":           func(*repo.Worktree) {},
		"ignored and so on": func(w *repo.Worktree) { write(t, filepath.Join(w.Path, "x.log"), "x") },
	} {
		w := add(t, r, "T")
		mask := value[fs.FileMode](t)(newFileMask(r))
		tree := gitIn(t, r.Root, "rev-parse", "main^{tree}")
		same := func() (same bool) {
			ix := value[*index](t)(openIndex(w, w.Git(), commitIndex))
			defer ix.drop()
			seen, err := ix.git.GlanceExactly(true, mask)
			return err == nil && seen.Tree == tree && !slices.ContainsFunc(seen.Suspects, seen.Tracks)
		}
		equal(t, "new", same(), true)
		change(w)
		equal(t, name, same(), name == "nothing" || strings.HasPrefix(name, "ignored"))
		value[string](t)(Remove(t.Context(), w, RemoveRequest{KeepBig: true}))
		_ = os.Remove(filepath.Join(r.Root, "second.log"))
	}
}

// A new worktree is not compared again for the first snapshot, if nothing can have run in it, and for every
// other one it is.
func TestSavedFirst(t *testing.T) {
	r := sample(t)
	r.Pool = repo.Pool{Bytes: 1 << 30}
	base := gitIn(t, r.Root, "rev-parse", "main^{tree}")
	for name, c := range map[string]struct {
		before   func(w *repo.Worktree)
		compared bool
	}{
		"nothing":    {func(*repo.Worktree) {}, false},
		"isolated":   {func(w *repo.Worktree) { must(t, Isolate(t.Context(), w)) }, true},
		"watched":    {func(w *repo.Worktree) { value[*Mark](t)(Watch(t.Context(), w, WatchOptions{})) }, true},
		"looked at":  {func(w *repo.Worktree) { value[string](t)(CurrentTree(t.Context(), w)) }, true},
		"other bits": {func(*repo.Worktree) { gitIn(t, r.Root, "config", "core.autocrlf", "input") }, true},
	} {
		w := value[*repo.Worktree](t)(Add(t.Context(), r, AddRequest{TaskID: "T", Base: "main", SavedFirst: true}))
		c.before(w)
		write(t, filepath.Join(w.Path, "file1.txt"), "edited")
		first := value[Snapshot](t)(TakeSnapshot(t.Context(), w, name, ""))
		equal(t, name, first.Tree != base, c.compared)
		second := value[Snapshot](t)(TakeSnapshot(t.Context(), w, name, ""))
		equal(t, name+", again", second.Tree != base, true)
		must(t, TakeCommits(t.Context(), w))
		value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
		_ = exec.Command("git", "-C", r.Root, "config", "--unset", "core.autocrlf").Run()
	}
}

// What time stamps do not show is read, and what only git knows is left to it.
func TestGlance(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	file := func(name string) string { return filepath.Join(w.Path, name) }
	glance := func(plain bool) string {
		t.Helper()
		ix := value[*index](t)(openIndex(w, w.Git(), commitIndex))
		defer ix.drop()
		seen, err := ix.git.Glance(plain)
		if err != nil {
			return err.Error()
		}
		return strings.Join(seen.Suspects, " ")
	}
	equal(t, "new", glance(true), "")
	text := read(t, file("file0.txt"))
	write(t, file("file0.txt"), strings.ToUpper(text)) // as long, in the same second
	write(t, file("dir/new"), "n")
	must(t, os.Remove(file("file1.txt")))
	must(t, os.Chmod(file("file2.txt"), 0o755))
	must(t, os.Remove(file("file3.txt")))
	must(t, os.Symlink("file4.txt", file("file3.txt")))
	must(t, os.RemoveAll(file(".beads")))
	must(t, os.MkdirAll(file("empty/dir"), 0o755))
	equal(t, "edited", glance(true), ".beads dir/new empty file0.txt file1.txt file2.txt file3.txt")
	must(t, os.RemoveAll(file("dir")))
	must(t, os.Symlink("..", file("dir")))
	equal(t, "a link for a directory", strings.Contains(glance(true), " dir "), true)

	kept := w.StatePath(commitIndex)
	raw := value[[]byte](t)(os.ReadFile(kept))
	for name, edit := range map[string]func([]byte) []byte{
		"version":     func(raw []byte) []byte { raw[7] = 4; return raw },
		"cut off":     func(raw []byte) []byte { return raw[:len(raw)/2] },
		"a submodule": func(raw []byte) []byte { raw[12+26] = 0xe0; return raw },
		"empty":       func([]byte) []byte { return []byte("DIRC") },
	} {
		must(t, os.WriteFile(kept, edit(slices.Clone(raw)), 0o644))
		equal(t, name, strings.HasPrefix(glance(true), "git must compare"), true)
	}
	must(t, os.WriteFile(kept, append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"), make([]byte, 20)...), 0o644))
	equal(t, "without entries", strings.HasPrefix(glance(true), ".gitignore "), true)
	must(t, os.WriteFile(kept, raw, 0o644))
	ix := value[*index](t)(openIndex(w, w.Git(), commitIndex))
	must(t, ix.mark(t.Context(), skipOption, []string{"file4.txt"}))
	must(t, ix.keep())
	ix.drop()
	equal(t, "a skipped entry", strings.HasPrefix(glance(true), "git must compare"), true)
}
