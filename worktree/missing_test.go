package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Refs whose objects are missing are healed: a task's branch has its last commit again, and other refs are gone.
func TestMissingObjects(t *testing.T) {
	r := sample(t)
	w := add(t, r, "t")
	first := gitIn(t, w.Path, "rev-parse", "HEAD")
	gitIn(t, w.Path, "commit", "-q", "--allow-empty", "-m", "made")
	lost := gitIn(t, w.Path, "rev-parse", "HEAD")
	_, err := snapshot.Take(t.Context(), w, "s", "kept")
	must(t, err)
	write(t, filepath.Join(w.Path, "new.txt"), "new\n")
	s, err := snapshot.Take(t.Context(), w, "s", "lost")
	must(t, err)
	_, err = claim.Acquire(t.Context(), r, claim.Claim{Task: "t", Holder: "h", Session: "s"}, "")
	must(t, err)
	held, err := r.Git().Ref(t.Context(), claim.Ref("t"))
	must(t, err)
	for _, oid := range []string{lost, s.Commit, held} {
		must(t, os.Remove(filepath.Join(r.GitDir, "objects", oid[:2], oid[2:])))
	}
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root)) // a new process
	missing, err := MissingObjects(t.Context(), r)
	must(t, err)
	if len(missing) != 3 {
		t.Fatalf("%v", missing)
	}
	for _, m := range missing {
		now, err := Heal(t.Context(), r, m)
		if must(t, err); strings.Contains(m.Ref, "heads") != (now == first) {
			t.Errorf("%s is now %q", m.Ref, now)
		}
	}
	if missing, err = MissingObjects(t.Context(), r); err != nil || len(missing) > 0 {
		t.Errorf("%v, %v", missing, err)
	}
	if got := gitIn(t, r.Root, "rev-parse", "coven/t"); got != first {
		t.Errorf("the branch is at %s, want %s", got, first)
	}
	w.Repo = r
	if _, err := snapshot.Take(t.Context(), w, "s", "again"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.Path, "new.txt")); err != nil {
		t.Error(err)
	}
}
