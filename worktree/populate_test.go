package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/supply"
)

// populated creates a superproject whose worktrees get the files of submodules, and the task T. The
// upstream of the submodule is deleted, so that nothing can be fetched.
func populated(t *testing.T) (*repo.Repo, *repo.Worktree) {
	t.Helper()
	r, upstream := superproject(t)
	must(t, os.RemoveAll(upstream))
	r.Submodules = true
	return r, add(t, r, "T")
}

// allOf returns the names, modes and contents of all files in a directory.
func allOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		must(t, err)
		info := value[os.FileInfo](t)(entry.Info())
		all.WriteString(strings.TrimPrefix(name, dir) + " " + info.Mode().String() + "\n")
		if info.Mode().IsRegular() {
			all.WriteString(read(t, name) + "\n")
		}
		return nil
	}))
	return all.String()
}

// A new worktree contains the files of submodules, as git would check them out, and a task's changes there
// do not change the main checkout.
func TestPopulate(t *testing.T) {
	oneAtATime(t)
	r, w := populated(t)
	lib, modules := filepath.Join(w.Path, "lib"), filepath.Join(r.GitDir, "modules")
	before := allOf(t, modules) + allOf(t, filepath.Join(r.Root, "lib"))
	equal(t, "file", read(t, filepath.Join(lib, "lib.c")), "1\n")
	equal(t, "HEAD", gitIn(t, lib, "rev-parse", "HEAD"), linkAt(t, r, "main"))
	equal(t, "submodule", gitIn(t, lib, "status", "--porcelain"), "")
	equal(t, "worktree", gitIn(t, w.Path, "status", "--porcelain"), "")
	equal(t, "remote", gitIn(t, lib, "remote", "get-url", "origin"), gitIn(t, filepath.Join(r.Root, "lib"), "remote", "get-url", "origin"))
	equal(t, "branches", gitIn(t, lib, "branch", "-r"), "  origin/main")

	write(t, filepath.Join(lib, "lib.c"), "2\n")
	gitIn(t, lib, "commit", "-qam", "two")
	gitIn(t, lib, "tag", "mine")
	gitIn(t, lib, "config", "user.name", "Agent")
	gitIn(t, lib, "repack", "-adq")
	equal(t, "files", strings.Join(commitAll(t, w, "use it").Files, " "), "lib")
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	refused := wantError[*integrate.GitlinkError](t, err)
	equal(t, "the main checkout", allOf(t, modules)+allOf(t, filepath.Join(r.Root, "lib")), before)
	runShell(t, refused.Next)
	equal(t, "landed", landAll(t, w), "lib")
	ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	if !strings.Contains(rescuedFiles(t, r, ref), rescue.GitDirName+"/modules/lib/") {
		t.Fatal("the commit in the submodule was not stored")
	}
}

// An unchanged submodule is not stored as work. Every other one is.
func TestRemovePopulated(t *testing.T) {
	oneAtATime(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, lib string)
		stored string // a file in the rescue, empty if there is none
	}{
		"nothing":      {func(*testing.T, string) {}, ""},
		"an edit":      {func(t *testing.T, lib string) { write(t, filepath.Join(lib, "lib.c"), "edited\n") }, "lib/lib.c"},
		"a new file":   {func(t *testing.T, lib string) { write(t, filepath.Join(lib, "new"), "new\n") }, "lib/new"},
		"an ignored":   {func(t *testing.T, lib string) { write(t, filepath.Join(lib, "x.log"), "log\n") }, "lib/x.log"},
		"a lost file":  {func(t *testing.T, lib string) { must(t, os.Remove(filepath.Join(lib, "lib.c"))) }, ""},
		"a branch":     {func(t *testing.T, lib string) { gitIn(t, lib, "checkout", "-qb", "mine") }, ""},
		"staged":       {func(t *testing.T, lib string) { stageAway(t, lib) }, rescue.GitDirName + "/modules/lib/index"},
		"a stash":      {func(t *testing.T, lib string) { stageAway(t, lib); gitIn(t, lib, "stash", "-q") }, rescue.GitDirName + "/modules/lib/refs/stash"},
		"a new borrow": {func(t *testing.T, lib string) { lend(t, lib) }, rescue.GitDirName + "/modules/lib/HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := populated(t)
			write(t, filepath.Join(w.Path, "a"), "a")
			equal(t, "landed", landAll(t, w), "a")
			c.change(t, filepath.Join(w.Path, "lib"))
			ref := leave(t, r, w)
			if c.stored == "" {
				equal(t, "rescue", ref, "")
				return
			}
			if !strings.Contains(rescuedFiles(t, r, ref), c.stored+"\n") {
				t.Fatalf("%s is not in the rescue %q", c.stored, ref)
			}
		})
	}
}

// stageAway stages a file and removes it from the checkout.
func stageAway(t *testing.T, lib string) {
	t.Helper()
	write(t, filepath.Join(lib, "lib.c"), "staged\n")
	gitIn(t, lib, "add", "lib.c")
	write(t, filepath.Join(lib, "lib.c"), "1\n")
}

// lend moves the objects of a submodule elsewhere.
func lend(t *testing.T, lib string) {
	t.Helper()
	write(t, filepath.Join(gitIn(t, lib, "rev-parse", "--absolute-git-dir"), "objects", "info", "alternates"), t.TempDir()+"\n")
}

// The pool works with submodules: the files of the repository are reused, and those of submodules are
// checked out again.
func TestPoolWithSubmodules(t *testing.T) {
	oneAtATime(t)
	r, upstream := superproject(t)
	r.Submodules, r.Pool = true, repo.Pool{Bytes: 1 << 30}
	w := add(t, r, "T")
	inode := inodeAt(t, filepath.Join(w.Path, "file1.txt"))
	write(t, filepath.Join(w.Path, "a"), "a")
	equal(t, "landed", landAll(t, w), "a")
	gitIn(t, filepath.Join(w.Path, "lib"), "checkout", "-qb", "mine")
	equal(t, "rescue", leave(t, r, w), "")
	moved := bump(t, r, upstream)
	gitIn(t, filepath.Join(r.Root, "lib"), "fetch", "-q")
	again := add(t, r, "U")
	equal(t, "used again", inodeAt(t, filepath.Join(again.Path, "file1.txt")), inode)
	equal(t, "HEAD", gitIn(t, filepath.Join(again.Path, "lib"), "rev-parse", "HEAD"), moved)
	equal(t, "file", read(t, filepath.Join(again.Path, "lib", "lib.c")), "1\n")
	equal(t, "submodule", gitIn(t, filepath.Join(again.Path, "lib"), "status", "--porcelain", "-b"), "## HEAD (no branch)")
	equal(t, "worktree", gitIn(t, again.Path, "status", "--porcelain"), "")
}

// Large ignored files do not prevent a landed worktree with submodules from going to the pool.
func TestPoolLargeIgnoredBesideSubmodules(t *testing.T) {
	oneAtATime(t)
	r, w := populated(t)
	r.Pool = repo.Pool{Bytes: 1 << 30}
	write(t, filepath.Join(w.Path, "a"), "a")
	equal(t, "landed", landAll(t, w), "a")
	write(t, filepath.Join(w.Path, "x.log"), strings.Repeat("x", rescue.MaxIgnored+1))
	equal(t, "rescue", leave(t, r, w), "")
	equal(t, "worktree", exists(w.Path), false)
}

// A submodule that the main checkout does not have stays empty, and a warning names it.
func TestPopulateWithout(t *testing.T) {
	oneAtATime(t)
	r, upstream := superproject(t)
	r.Submodules = true
	bump(t, r, upstream)
	w := add(t, r, "T")
	done := value[supply.Included](t)(supply.IncludedFiles(w))
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "submodule lib stays empty: the main checkout does not have its commit") {
		t.Fatal(done.Warnings)
	}
	equal(t, "files", len(value[[]os.DirEntry](t)(os.ReadDir(filepath.Join(w.Path, "lib")))), 0)
	equal(t, "git directory", exists(filepath.Join(w.Admin, "modules", "lib")), false)
	write(t, filepath.Join(w.Path, "a"), "a")
	equal(t, "landed", landAll(t, w), "a")
}

// The submodules are recreated with the worktree, with the files of the snapshot.
func TestRecreatePopulated(t *testing.T) {
	oneAtATime(t)
	r, w := populated(t)
	write(t, filepath.Join(w.Path, "lib", "lib.c"), "an edit\n")
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
	must(t, file.RemoveAll(w.Path))
	again, _, err := Recreate(t.Context(), r, "T", "s")
	must(t, err)
	lib := filepath.Join(again.Path, "lib")
	equal(t, "file", read(t, filepath.Join(lib, "lib.c")), "an edit\n")
	equal(t, "HEAD", gitIn(t, lib, "rev-parse", "HEAD"), linkAt(t, r, "main"))
	equal(t, "status", gitIn(t, lib, "status", "--porcelain"), " M lib.c")
	equal(t, "rescues", len(value[[]rescue.Info](t)(rescue.List(t.Context(), r, "T"))), 0)
}

// A kill while submodules are populated leaves nothing in the way.
func TestPopulateSurvivesKill(t *testing.T) {
	r, _ := superproject(t)
	r.Submodules = true
	killAt(t, actorCommand(r.Root, "T", "add.populated", land.Squash), "add.populated")
	w := add(t, r, "T")
	equal(t, "submodule", gitIn(t, filepath.Join(w.Path, "lib"), "status", "--porcelain"), "")
	equal(t, "rescues", len(value[[]rescue.Info](t)(rescue.List(t.Context(), r, "T"))), 0)
}
