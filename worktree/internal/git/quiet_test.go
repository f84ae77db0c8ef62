package git

import (
	"os"
	"testing"

	"github.com/coven-run/coven/worktree/internal/ref"
)

// The shared git process makes only transactions that need nothing from the operation: no lock to hold, no
// object directory, no settings, and no message for a reflog.
func TestQuiet(t *testing.T) {
	own := func(change func(r *Repo)) Repo {
		r := Repo{Dir: "/repo/.git", Store: OpenStore("/repo/.git")}
		change(&r)
		return r
	}
	ours := []ref.Edit{ref.Create("refs/coven/a", "1"), ref.Drop("refs/coven/b")}
	for name, c := range map[string]struct {
		repo  Repo
		edits []ref.Edit
		want  bool
	}{
		"own refs":        {own(func(*Repo) {}), ours, true},
		"without a store": {own(func(r *Repo) { r.Store = nil }), ours, false},
		"elsewhere":       {own(func(r *Repo) { r.Dir = "/repo/.git/coven/plain" }), ours, false},
		"with a lock":     {own(func(r *Repo) { r.Hold = os.Stdin }), ours, false},
		"with objects":    {own(func(r *Repo) { r.ObjectDir = "/x" }), ours, false},
		"with settings":   {own(func(r *Repo) { r.Settings = []Setting{{Key: "a.b", Value: "c"}} }), ours, false},
		"with variables":  {own(func(r *Repo) { r.Env = []string{"A=b"} }), ours, false},
		"a branch":        {own(func(*Repo) {}), append(ours, ref.Create("refs/heads/x", "1")), false},
	} {
		if got := c.repo.quiet(c.edits); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
