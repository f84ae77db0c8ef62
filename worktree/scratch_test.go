package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/scratch"
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
