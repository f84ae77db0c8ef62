package worktree

import (
	"crypto/rand"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestAccount(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	account := func() map[string]RefAccount {
		t.Helper()
		found := map[string]RefAccount{}
		for i, a := range value[[]RefAccount](t)(Account(ctx, r)) {
			if want := []string{"claims", "snapshots", "rescue", "in", "keep", "branches", "odd"}[i]; a.Kind != want {
				t.Fatalf("kind %d is %s, want %s", i, a.Kind, want)
			}
			found[a.Kind] = a
		}
		return found
	}
	for kind, a := range account() {
		equal(t, kind, a, RefAccount{Kind: kind})
	}
	big := make([]byte, 100_000) // incompressible
	_, _ = rand.Read(big)
	w := add(t, r, "T")
	equal(t, "a branch that adds nothing", account()["branches"], RefAccount{Kind: "branches", Count: 1})
	write(t, filepath.Join(w.Path, "big"), string(big))
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	claimFor(t, r, "T")
	got := account()
	atLeast(t, "snapshots", got["snapshots"], 1, 100_000)
	atLeast(t, "claims", got["claims"], 1, 50)
	equal(t, "branches", got["branches"].Bytes, 0)

	commitAll(t, w, "now the branch has it, too")
	got = account()
	if got["snapshots"].Bytes > 10_000 || got["branches"].Bytes > 10_000 {
		t.Fatalf("a shared object is counted as one kind's own: %v", got)
	}
	write(t, filepath.Join(w.Path, "x.log"), "ignored")
	value[string](t)(rescue.Take(ctx, w, "", false))
	value[string](t)(rescue.Take(ctx, w, "", false))
	atLeast(t, "rescue", account()["rescue"], 2, 50)
	gitIn(t, r.Root, "update-ref", "refs/coven/in/T", "main")
	gitIn(t, r.Root, "update-ref", "refs/coven/odd/T", "main")
	equal(t, "in", account()["in"], RefAccount{Kind: "in", Count: 1})
	equal(t, "odd", account()["odd"], RefAccount{Kind: "odd", Count: 1})
}

func atLeast(t *testing.T, what string, got RefAccount, count int, bytes int64) {
	t.Helper()
	if got.Count != count || got.Bytes < bytes {
		t.Fatalf("%s: %+v, want %d refs and at least %d bytes", what, got, count, bytes)
	}
}
