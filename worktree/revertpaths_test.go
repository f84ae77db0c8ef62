package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/worktree/snapshot"
)

func TestRevertPaths(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "src/a"), "one")
	write(t, filepath.Join(w.Path, "src/b"), "one")
	write(t, filepath.Join(w.Path, "src.txt"), "one")
	write(t, filepath.Join(w.Path, "kind"), "a file")
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	write(t, filepath.Join(w.Path, "src/a"), "two")
	must(t, os.Remove(filepath.Join(w.Path, "src/b")))
	write(t, filepath.Join(w.Path, "src/new"), "two")
	write(t, filepath.Join(w.Path, "src.txt"), "two")
	must(t, os.Remove(filepath.Join(w.Path, "kind")))
	write(t, filepath.Join(w.Path, "kind/now/a/directory"), "two")
	after := contents(t, w.Path)

	undo := value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", 1, "src", "kind"))
	equal(t, "src/a", read(t, filepath.Join(w.Path, "src/a")), "one")
	equal(t, "src/b", read(t, filepath.Join(w.Path, "src/b")), "one")
	equal(t, "src/new", exists(filepath.Join(w.Path, "src/new")), false)
	equal(t, "src.txt", read(t, filepath.Join(w.Path, "src.txt")), "two")
	equal(t, "kind", read(t, filepath.Join(w.Path, "kind")), "a file")

	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", undo.N))
	equal(t, "undone", contents(t, w.Path), after)

	_, err := snapshot.Revert(ctx, w, "s", 1, "src", "nowhere")
	if missing := (*snapshot.NoPathError)(nil); !errors.As(err, &missing) || missing.Path != "nowhere" || missing.N != 1 {
		t.Errorf("got %v", err)
	}
	equal(t, "nothing reverted", contents(t, w.Path), after)
}

// T-31: after any edits, a revert restores each byte, mode and link, and a second revert undoes it. Ignored
// files stay.
func TestRevertIsExact(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	onMain(t, r, ".gitignore", "*.log\n")
	onMain(t, r, ".gitattributes", "*.txt text=auto\n")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "kept.log"), "ignored")
	names := []string{"a", "a/b", "dir/b", "dir/deep/c.txt", "file0.txt", "file1.txt", "line\nfeed", "\xff", " x ", "-dash", "new"}
	edit := func(rt *rapid.T) {
		name := filepath.Join(w.Path, rapid.SampledFrom(names).Draw(rt, "name"))
		text := rapid.SampledFrom([]string{"", "x", "one\r\ntwo\n", "\x00"}).Draw(rt, "text")
		kind := rapid.IntRange(0, 4).Draw(rt, "kind")
		if above, err := os.Lstat(filepath.Dir(name)); err == nil && !above.IsDir() {
			must(t, os.RemoveAll(filepath.Dir(name)))
		}
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.RemoveAll(name))
		switch kind {
		case 0:
		case 1:
			must(t, os.Symlink("file0.txt", name))
		case 2:
			must(t, os.WriteFile(name, []byte(text), 0o755))
		default:
			must(t, os.WriteFile(name, []byte(text), 0o644))
		}
	}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 20 && os.Getenv("COVEN_LONG") == "" { // `make long` runs all of it
			return
		}
		session := fmt.Sprint("s", n)
		for range rapid.IntRange(0, 4).Draw(rt, "edits") {
			edit(rt)
		}
		s := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, session, ""))
		before := contents(t, w.Path)
		for range rapid.IntRange(0, 4).Draw(rt, "more edits") {
			edit(rt)
		}
		after := contents(t, w.Path)
		undo := value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, session, s.N))
		if got := contents(t, w.Path); !same(got, before) {
			rt.Fatalf("got\n%v\nwant\n%v", got, before)
		}
		value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, session, undo.N))
		if got := contents(t, w.Path); !same(got, after) {
			rt.Fatalf("undone: got\n%v\nwant\n%v", got, after)
		}
	})
	equal(t, "an ignored file", read(t, filepath.Join(w.Path, "kept.log")), "ignored")
}

// A revert to a snapshot with Only some files, as taken by coven 0.1.0, restores only these files.
func TestRevertToOnly(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	file := func(name string) string { return filepath.Join(w.Path, name) }
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	write(t, file("file0.txt"), "changed")
	write(t, file("new/er"), "new")
	tree := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "other", "")).Tree
	only := snapshot.Snapshot{N: 2, Tree: tree, Tip: first.Tip, Only: []string{"file0.txt", "new/er"}}
	value[snapshot.Snapshot](t)(snapshot.Append(ctx, r, "s", only, first))
	must(t, os.RemoveAll(file("new")))
	write(t, file("file0.txt"), "one\ntwo\nthree 0\n")
	write(t, file("other"), "since")

	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", 2))
	equal(t, "one that it has", read(t, file("file0.txt")), "changed")
	equal(t, "a new one that it has", read(t, file("new/er")), "new")
	equal(t, "another file", read(t, file("other")), "since")
	_, err := snapshot.Revert(ctx, w, "s", 2, "other")
	if missing := (*snapshot.NoPathError)(nil); !errors.As(err, &missing) || len(missing.Only) != 2 {
		t.Errorf("got %v", err)
	}
}

func same[T any](a, b T) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
