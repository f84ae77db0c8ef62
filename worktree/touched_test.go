package worktree

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/snapshot"
)

// touch changes the stat data that git records for a file, but not its content.
func touch(t *testing.T, path string) {
	t.Helper()
	past := time.Now().Add(-3 * time.Hour)
	must(t, os.Chtimes(path, past, past))
}

// Files that were touched, or rewritten with the same content, do not block a landing.
func TestTouchedFiles(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	file := filepath.Join(w.Path, "file0.txt")
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "first"))
	write(t, file, "mine\n")
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "second"))
	touch(t, file)
	value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", first.Commit))
	equal(t, "to a snapshot", read(t, file), "one\ntwo\nthree 0\n")

	write(t, file, "mine\n")
	value[string](t)(content.Tree(ctx, w))
	touch(t, file)
	value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", "main"))
	equal(t, "to a commit", read(t, file), "one\ntwo\nthree 0\n")

	touch(t, file)
	onMain(t, r, "file0.txt", "theirs\n")
	value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	equal(t, "integrated", read(t, file), "theirs\n")
}
