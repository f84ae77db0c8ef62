package worktree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/worktree/internal/git"
)

func TestRevertPaths(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "src/a"), "one")
	write(t, filepath.Join(w.Path, "src/b"), "one")
	write(t, filepath.Join(w.Path, "src.txt"), "one")
	write(t, filepath.Join(w.Path, "kind"), "a file")
	value[Snapshot](t)(TakeSnapshot(ctx, w, "s", ""))
	write(t, filepath.Join(w.Path, "src/a"), "two")
	must(t, os.Remove(filepath.Join(w.Path, "src/b")))
	write(t, filepath.Join(w.Path, "src/new"), "two")
	write(t, filepath.Join(w.Path, "src.txt"), "two")
	must(t, os.Remove(filepath.Join(w.Path, "kind")))
	write(t, filepath.Join(w.Path, "kind/now/a/directory"), "two")
	after := contents(t, w.Path)

	undo := value[Snapshot](t)(Revert(ctx, w, "s", 1, "src", "kind"))
	equal(t, "src/a", read(t, filepath.Join(w.Path, "src/a")), "one")
	equal(t, "src/b", read(t, filepath.Join(w.Path, "src/b")), "one")
	equal(t, "src/new", exists(filepath.Join(w.Path, "src/new")), false)
	equal(t, "src.txt", read(t, filepath.Join(w.Path, "src.txt")), "two")
	equal(t, "kind", read(t, filepath.Join(w.Path, "kind")), "a file")

	value[Snapshot](t)(Revert(ctx, w, "s", undo.N))
	equal(t, "undone", contents(t, w.Path), after)

	_, err := Revert(ctx, w, "s", 1, "src", "nowhere")
	if missing := (*NoPathError)(nil); !errors.As(err, &missing) || missing.Path != "nowhere" || missing.N != 1 {
		t.Errorf("got %v", err)
	}
	equal(t, "nothing reverted", contents(t, w.Path), after)
}

// T-31: whatever is edited, a revert restores each byte, mode and link, and a second one undoes
// it. Ignored files stay.
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
		if n++; n > 20 && os.Getenv("COVEN_LONG") == "" { // make long runs all of it
			return
		}
		session := fmt.Sprint("s", n)
		for range rapid.IntRange(0, 4).Draw(rt, "edits") {
			edit(rt)
		}
		s := value[Snapshot](t)(TakeSnapshot(ctx, w, session, ""))
		before := contents(t, w.Path)
		for range rapid.IntRange(0, 4).Draw(rt, "more edits") {
			edit(rt)
		}
		after := contents(t, w.Path)
		undo := value[Snapshot](t)(Revert(ctx, w, session, s.N))
		if got := contents(t, w.Path); !same(got, before) {
			rt.Fatalf("got\n%v\nwant\n%v", got, before)
		}
		value[Snapshot](t)(Revert(ctx, w, session, undo.N))
		if got := contents(t, w.Path); !same(got, after) {
			rt.Fatalf("undone: got\n%v\nwant\n%v", got, after)
		}
	})
	equal(t, "an ignored file", read(t, filepath.Join(w.Path, "kept.log")), "ignored")
}

// A revert of named files that are stored as they are looks at no other file, and the snapshot
// before it undoes it, whatever else has changed.
func TestRevertAlone(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	file := func(name string) string { return filepath.Join(w.Path, name) }
	must(t, os.Symlink("file0.txt", file("link")))
	write(t, file("gone/deep"), "gone")
	write(t, file("ignored.log"), "not in a snapshot")
	value[Snapshot](t)(TakeSnapshot(ctx, w, "s", ""))
	write(t, file("file0.txt"), "changed")
	must(t, os.Chmod(file("file1.txt"), 0o755))
	must(t, os.Remove(file("link")))
	must(t, os.RemoveAll(file("gone")))
	write(t, file("new/er"), "new")
	write(t, file("other"), "in no snapshot")
	after := contents(t, w.Path)
	names := []string{"file0.txt", "file1.txt", "link", "gone/deep", "new/er"}

	undo := value[Snapshot](t)(Revert(ctx, w, "s", 1, names...))
	equal(t, "what is saved", strings.Join(undo.Only, " "), strings.Join(names, " "))
	for name, want := range map[string]string{"file0.txt": "one\ntwo\nthree 0\n", "gone/deep": "gone", "other": "in no snapshot"} {
		equal(t, name, read(t, file(name)), want)
	}
	equal(t, "link", value[string](t)(os.Readlink(file("link"))), "file0.txt")
	equal(t, "mode", value[os.FileInfo](t)(os.Stat(file("file1.txt"))).Mode()&0o111, 0)
	equal(t, "the directory of a new file", exists(file("new")), false)
	equal(t, "status", strings.Contains(gitIn(t, w.Path, "status", "--porcelain"), "file0.txt"), false)

	write(t, file("other"), "changed since")
	redo := value[Snapshot](t)(Revert(ctx, w, "s", undo.N))
	equal(t, "another file", read(t, file("other")), "changed since")
	write(t, file("other"), "in no snapshot")
	equal(t, "undone", contents(t, w.Path), after)
	value[Snapshot](t)(Revert(ctx, w, "s", redo.N, "file0.txt"))
	equal(t, "one of them", read(t, file("file0.txt")), "one\ntwo\nthree 0\n")
	_, err := Revert(ctx, w, "s", undo.N, "other")
	if missing := (*NoPathError)(nil); !errors.As(err, &missing) || len(missing.Only) != len(names) {
		t.Errorf("got %v", err)
	}
	whole := value[Snapshot](t)(SnapshotPaths(ctx, w, "s", "", []string{"file0.txt"}))
	equal(t, "the next snapshot", len(whole.Only), 0)
	equal(t, "another file in it", gitIn(t, r.Root, "show", whole.Tree+":other"), "in no snapshot")
	_, err = Revert(ctx, w, "s", 1, "ignored.log")
	equal(t, "an ignored file has no snapshot", errors.As(err, new(*NoPathError)), true)
	equal(t, "it stays", read(t, file("ignored.log")), "not in a snapshot")
	gitIn(t, r.Root, "fsck", "--strict", "--no-dangling")
}

// What a revert of named files does is what a look at all files does.
func TestRevertAloneIsExact(t *testing.T) {
	oneAtATime(t)
	edits := slices.DeleteFunc(pathEdits(t), func(e pathEdit) bool { return e.name == "ignore rules" }) // what they match stays
	alone := 0
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := sample(t)
		w := add(t, r, "T")
		edit := func() string {
			e := edits[random.IntN(len(edits))]
			if info, err := os.Lstat(filepath.Join(w.Path, "file4.txt")); strings.HasPrefix(e.path, "file4.txt") && (err != nil || info.IsDir()) {
				return "file4.txt"
			}
			e.edit(w, filepath.Join(w.Path, e.path))
			return e.path
		}
		for range 8 {
			write(t, filepath.Join(w.Path, "other"), fmt.Sprint("not named", random.IntN(100)))
			s := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", ""))
			names := []string{edit(), edit()}
			slices.Sort(names)
			names = slices.Compact(names)
			write(t, filepath.Join(w.Path, "other"), fmt.Sprint("not named", random.IntN(100)))
			before := contents(t, w.Path)
			undo, err := Revert(t.Context(), w, "s", s.N, names...)
			if errors.As(err, new(*NoPathError)) {
				equal(t, "nothing is reverted", contents(t, w.Path), before)
				continue
			}
			must(t, err)
			if undo.Only != nil {
				alone++
			}
			reverted := contents(t, w.Path)
			value[Snapshot](t)(Revert(t.Context(), w, "s", undo.N))
			if got := contents(t, w.Path); got != before {
				t.Fatalf("seed %d, %q: undone:\n%s\nwant\n%s", seed, names, got, before)
			}
			commit := value[git.Commit](t)(r.Git().Commit(t.Context(), s.Commit))
			value[Snapshot](t)(restoreTree(t.Context(), w, "s", commit, names))
			if got := contents(t, w.Path); got != reverted {
				t.Fatalf("seed %d, %q: reverted:\n%s\nwant\n%s", seed, names, reverted, got)
			}
		}
	}
	if alone < 5 {
		t.Errorf("only %d reverts looked at no other file", alone)
	}
}

// A file that changes while it is reverted is saved with the next look.
func TestRevertAloneMeanwhile(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	s := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", ""))
	name := filepath.Join(w.Path, "file0.txt")
	write(t, name, "changed")
	files := value[[]loneFile](t)(loneFiles(t.Context(), w, s.Tree, s.Tree, []string{"file0.txt"}))
	write(t, name, "changed meanwhile")
	root := value[*os.Root](t)(os.OpenRoot(w.Path))
	t.Cleanup(func() { _ = root.Close() })
	files[0].staged = filepath.Join(t.TempDir(), "staged")
	must(t, stageAlone(t.Context(), w, files[0], s.Tree))
	equal(t, "error", errors.Is(files[0].replace(root), errLookAtAll), true)
	equal(t, "file", read(t, name), "changed meanwhile")
}

// Filters, submodules and directories need a look at all files.
func TestRevertNotAlone(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	s := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", ""))
	alone := func(name string) bool {
		_, err := loneFiles(t.Context(), w, s.Tree, s.Tree, []string{name})
		return err == nil
	}
	equal(t, "a file", alone("file0.txt"), true)
	for _, name := range []string{"dir", ".", "none", "../x", "file0.txt/x", ".git", "dir/.gitattributes"} {
		equal(t, name, alone(name), false)
	}
	gitIn(t, r.Root, "config", "filter.up.smudge", "tr a-z A-Z")
	write(t, filepath.Join(w.Path, ".gitattributes"), "*.txt filter=up\n")
	equal(t, "a file with a filter", alone("file0.txt"), false)
	must(t, os.Remove(filepath.Join(w.Path, ".gitattributes")))
	gitIn(t, w.Path, "init", "-q", "dir")
	equal(t, "a file in a repository", alone("dir/deep/x.txt"), false)
}

func same[T any](a, b T) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
