package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/isolation"
)

// The contents that an agent's Git LFS has stored come into the repository. Others, and files that would fill the disk, do
// not.
func TestTakeLFSContents(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	must(t, isolation.Begin(ctx, w))
	store := func(oid, content string) string {
		name := isolation.PrivatePath(w, "lfs", "objects", oid[:2], oid[2:4], oid)
		write(t, name, content)
		return filepath.Join(r.GitDir, "lfs", "objects", oid[:2], oid[2:4], oid)
	}
	hash := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:])
	}
	good := store(hash("content"), "content")
	wrong := store(hash("something else"), "content")
	vast := store(hash("vast"), "vast")
	must(t, os.Truncate(isolation.PrivatePath(w, "lfs", "objects", hash("vast")[:2], hash("vast")[2:4], hash("vast")), 1<<40))
	must(t, isolation.TakeCommits(ctx, w))
	equal(t, "content", read(t, good), "content")
	equal(t, "another content", exists(wrong), false)
	equal(t, "vast", exists(vast), false)
}
