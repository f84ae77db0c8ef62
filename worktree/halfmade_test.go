package worktree

import (
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/land"
)

// A worktree that a git process is just creating or removing does not obstruct a landing.
func TestLandBesideHalfMadeWorktrees(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "t")
	held := claimFor(t, r, "t")
	admins := filepath.Join(r.GitDir, "worktrees")
	write(t, filepath.Join(admins, "empty", "gitdir"), "")
	there := t.TempDir()
	write(t, filepath.Join(admins, "headless", "gitdir"), filepath.Join(there, ".git")+"\n")
	write(t, filepath.Join(admins, "headless", "commondir"), "../..\n")
	landed, err := land.Land(t.Context(), w, land.Request{Landing: c, Message: "m", ClaimOid: held.Oid, Journal: nowhere{}})
	if err != nil || landed.New == "" {
		t.Fatalf("%+v, %v", landed, err)
	}
}

// nowhere is a Journal that discards everything.
type nowhere struct{}

func (nowhere) Intent(integrate.Landing) error { return nil }
