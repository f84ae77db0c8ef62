package worktree

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// A pathEdit is a change of one file.
type pathEdit struct {
	name, path string
	alone      bool // it can be saved alone in the sample repository
	edit       func(w *repo.Worktree, file string)
}

func pathEdits(t *testing.T) []pathEdit {
	put := func(content string) func(*repo.Worktree, string) {
		return func(_ *repo.Worktree, file string) { write(t, file, content) }
	}
	return []pathEdit{
		{"a change", "file0.txt", true, put("changed\n")},
		{"another change", "file0.txt", true, put("changed again\n")},
		{"a change in a directory", "dir/deep/x.txt", true, put("y\n")},
		{"line endings", "file1.txt", true, put("one\r\ntwo\n")},
		{"a new file", "new", true, put("new\n")},
		{"a new file in new directories", "a/b\n😀/c", true, put("new\n")},
		{"an ignored file", "x.log", true, put("ignored\n")},
		{"a file in an ignored directory", "build/x", true, put("ignored\n")},
		{"nothing", "none", true, func(*repo.Worktree, string) {}},
		{"a deletion", "file2.txt", true, func(_ *repo.Worktree, file string) { must(t, os.RemoveAll(file)) }},
		{"a mode", "file3.txt", true, func(_ *repo.Worktree, file string) { must(t, os.Chmod(file, 0o755)) }},
		{"a link", "link", true, func(_ *repo.Worktree, file string) { _ = os.Symlink("../nowhere", file) }},
		{"the last file of a directory", "dir/deep/x.txt", true, func(_ *repo.Worktree, file string) { _ = os.Remove(file) }},
		{"ignore rules", "dir/.gitignore", false, put("deep\n")},
		{"attributes", ".gitattributes", false, put("*.txt text eol=crlf\n")},
		{"a file in a repository", "inner/file", false, func(w *repo.Worktree, file string) {
			gitIn(t, w.Path, "init", "-q", "inner")
			write(t, file, "x")
		}},
		{"a directory for a file", "file4.txt", false, func(_ *repo.Worktree, file string) {
			must(t, os.RemoveAll(file))
			write(t, filepath.Join(file, "inside"), "x")
		}},
		{"a file beyond a link", "to/x.txt", false, func(w *repo.Worktree, _ string) {
			_ = os.Symlink("dir", filepath.Join(w.Path, "to"))
			write(t, filepath.Join(w.Path, "dir/x.txt"), "x")
		}},
	}
}

// A snapshot of known paths is what a snapshot of everything is.
func TestSnapshotPathsIsExact(t *testing.T) {
	oneAtATime(t)
	edits := pathEdits(t)
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 5))
		r := sample(t)
		w := add(t, r, "T")
		value[Snapshot](t)(TakeSnapshot(t.Context(), w, "paths", "first"))
		before := ""
		for range 12 {
			e := edits[random.IntN(len(edits))]
			if in := strings.Split(e.path, "/")[0]; in == "file4.txt" && random.IntN(2) == 0 {
				continue // it is a directory from now on
			}
			e.edit(w, filepath.Join(w.Path, e.path))
			paths := []string{e.path}
			if e.name == "a file beyond a link" {
				paths = append(paths, "to", "dir/x.txt")
			}
			if e.name == "a directory for a file" {
				paths = append(paths, "file4.txt/inside")
			}
			got := value[Snapshot](t)(SnapshotPaths(t.Context(), w, "paths", e.name, paths))
			want := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "all", ""))
			if got.Tree != want.Tree {
				t.Fatalf("seed %d: after %s (before: %s) the snapshot differs:\n%s", seed, e.name, before, gitIn(t, r.Root, "diff-tree", "-r", want.Tree, got.Tree))
			}
			before = e.name
		}
		gitIn(t, r.Root, "fsck", "--strict", "--no-dangling")
	}
}

// Only what might be stored differently is left to a look at all files.
func TestSnapshotPathsAlone(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	last := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", ""))
	tries := func(name string) bool {
		_, err := editsOf(t.Context(), w, last.Tree, []string{name})
		return err == nil
	}
	for _, e := range pathEdits(t) {
		e.edit(w, filepath.Join(w.Path, e.path))
		if got := tries(e.path); got != e.alone && e.path != "to/x.txt" && !strings.HasPrefix(e.path, "file") {
			t.Errorf("%s is saved alone: %v", e.name, got)
		}
	}
	for _, name := range []string{"../x", "/etc/passwd", "", ".", "dir", "dir/../file0.txt", "to/x.txt", "file4.txt/inside/x"} {
		if tries(name) && name != "file4.txt/inside/x" {
			t.Errorf("%q is saved alone", name)
		}
	}
	must(t, os.RemoveAll(filepath.Join(w.Path, ".gitattributes")))
	gitIn(t, r.Root, "config", "filter.up.clean", "tr a-z A-Z")
	if !tries("file0.txt") {
		t.Error("a filter that no file has keeps files from being saved alone")
	}
	write(t, filepath.Join(w.Path, "dir/.gitattributes"), "*.txt filter=up\n")
	if tries("dir/deep/x.txt") || !tries("file0.txt") {
		t.Error("a filter is not found where it is")
	}
	gitIn(t, r.Root, "config", "core.symlinks", "false")
	if tries("file0.txt") {
		t.Error("links that are stored as files are saved alone")
	}
}

// A snapshot that someone else takes meanwhile is not passed over.
func TestSnapshotPathsAfterAnother(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	ctx := context.Background()
	first := value[Snapshot](t)(TakeSnapshot(ctx, w, "s", ""))
	write(t, filepath.Join(w.Path, "file0.txt"), "by another\n")
	value[Snapshot](t)(TakeSnapshot(ctx, w, "s", "another"))
	write(t, filepath.Join(w.Path, "file1.txt"), "known\n")
	if _, err := snapshotPaths(ctx, w, "s", "", first, []string{"file1.txt"}); err == nil {
		t.Fatal("a snapshot is appended to one that is no longer the last")
	}
	s := value[Snapshot](t)(SnapshotPaths(ctx, w, "s", "", []string{"file1.txt"}))
	equal(t, "number", s.N, 3)
	equal(t, "the other's", gitIn(t, r.Root, "show", s.Tree+":file0.txt"), "by another")
	equal(t, "ours", gitIn(t, r.Root, "show", s.Tree+":file1.txt"), "known")
}
