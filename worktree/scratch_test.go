package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/scratch"
	"github.com/coven-run/coven/worktree/snapshot"
)

// A scratch repository has the objects and the identity of the other one, and neither its remotes nor its refs.
func TestScratchRepository(t *testing.T) {
	r := largeRepo(t, 3)
	gitIn(t, r.Root, "remote", "add", "origin", "https://example.com/x")
	gitIn(t, r.Root, "config", "user.name", "Ada \"A\" L")
	gitIn(t, r.Root, "branch", "other")
	base, before := gitIn(t, r.Root, "rev-parse", "HEAD"), gitIn(t, r.Root, "for-each-ref")
	dir := filepath.Join(t.TempDir(), "made")
	if err := scratch.Make(t.Context(), r, dir, strings.TrimSpace(base)); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"for-each-ref --format=%(refname)": "refs/heads/" + scratch.Branch, "remote": "", "config user.name": "Ada \"A\" L",
		"rev-parse HEAD": strings.TrimSpace(base), "fsck --connectivity-only": "", "config core.bare": "false",
	} {
		if got := strings.TrimSpace(gitIn(t, dir, strings.Fields(args)...)); got != want {
			t.Errorf("git %s: %q, want %q", args, got, want)
		}
	}
	gitIn(t, dir, "checkout", "-q", scratch.Branch)
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "add", "new")
	gitIn(t, dir, "commit", "-qm", "new")
	if after := gitIn(t, r.Root, "for-each-ref"); after != before {
		t.Errorf("the refs changed: %s", after)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	gitIn(t, r.Root, "fsck", "--no-dangling")
}

// A step starts from the files of its snapshot, on the branch as it was, and its change is based on the target that the branch contained.
func TestScratchStart(t *testing.T) {
	r := largeRepo(t, 3)
	base := strings.TrimSpace(gitIn(t, r.Root, "rev-parse", "HEAD"))
	w, err := Add(t.Context(), r, AddRequest{TaskID: "one", Base: base})
	must(t, err)
	write := func(dir, name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write(r.Root, "theirs", "x\n")
	gitIn(t, r.Root, "add", "theirs")
	gitIn(t, r.Root, "commit", "-qm", "theirs")
	target := strings.TrimSpace(gitIn(t, r.Root, "rev-parse", "HEAD"))
	write(w.Path, "mine", "x\n")
	gitIn(t, w.Path, "add", "mine")
	gitIn(t, w.Path, "commit", "-qm", "mine")
	clean, err := snapshot.Take(t.Context(), w, "s", "clean")
	must(t, err)
	gitIn(t, w.Path, "merge", "-q", "--no-edit", target)
	write(w.Path, "uncommitted", "x\n")
	dirty, err := snapshot.Take(t.Context(), w, "s", "dirty")
	must(t, err)

	dir := filepath.Join(t.TempDir(), "made")
	must(t, scratch.Make(t.Context(), r, dir, base))
	made, err := Open(t.Context(), dir)
	must(t, err)
	for _, c := range []struct {
		of   snapshot.Snapshot
		base string
	}{{clean, base}, {dirty, target}} {
		s, err := scratch.StartOf(t.Context(), r, c.of.Commit, target)
		must(t, err)
		commit, err := scratch.Commit(t.Context(), made, s.Snapshot)
		must(t, err)
		tree := strings.TrimSpace(gitIn(t, dir, "rev-parse", commit+"^{tree}"))
		if s.Base != c.base || tree != c.of.Tree || (commit == c.of.Tip) != (c.base == base) {
			t.Errorf("%s: base %s, commit %s", c.of.Note, s.Base, commit)
		}
	}
	if got := gitIn(t, r.Root, "log", "--all", "--format=%s"); strings.Contains(got, "Uncommitted") {
		t.Errorf("in the other repository: %s", got)
	}

	// Where git may convert files, the tip has them.
	write(w.Path, ".gitattributes", "*.txt text\n")
	gitIn(t, w.Path, "add", ".gitattributes")
	gitIn(t, w.Path, "commit", "-qm", "attributes")
	converts, err := snapshot.Take(t.Context(), w, "s", "converts")
	must(t, err)
	if commit, err := scratch.Commit(t.Context(), made, converts); err != nil || commit != converts.Tip {
		t.Errorf("%s, %v", commit, err)
	}
	if _, err := scratch.StartOf(t.Context(), r, strings.Repeat("1", 40), target); !errors.Is(err, snapshot.ErrNone) {
		t.Error(err)
	}
	for commit, want := range map[string]bool{base: true, converts.Tip: true} {
		if ok, err := scratch.IsComplete(t.Context(), r, commit); ok != want || err != nil {
			t.Errorf("%s: %v, %v", commit, ok, err)
		}
	}
}
