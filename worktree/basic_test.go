package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

func TestAddCommitDiffLand(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := sample(t, "--object-format="+format)
			ctx := t.Context()
			w := add(t, r, "T-1")
			equal(t, "status after add", gitIn(t, w.Path, "status", "--porcelain"), "")
			equal(t, "branch", gitIn(t, w.Path, "symbolic-ref", "HEAD"), "refs/heads/coven/T-1")
			if !strings.Contains(gitIn(t, r.Root, "worktree", "list"), w.Path) {
				t.Fatal("git does not list the worktree")
			}

			write(t, filepath.Join(w.Path, "file0.txt"), "changed\n")
			write(t, filepath.Join(w.Path, "new \"é😀\n.txt"), "new\n")
			write(t, filepath.Join(w.Path, "x.log"), "ignored\n")
			write(t, filepath.Join(w.Path, "bin"), "a\x00b")
			must(t, os.Remove(filepath.Join(w.Path, "file1.txt")))
			must(t, os.Symlink("file0.txt", filepath.Join(w.Path, "link")))
			must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o755))

			before := value[diff.Diff](t)(diff.Of(ctx, w, "main"))
			tree := value[string](t)(content.Tree(ctx, w))
			c := commitAll(t, w, "do it")
			equal(t, "tree", c.Tree, tree)
			equal(t, "status after commit", gitIn(t, w.Path, "status", "--porcelain"), "")
			after := value[diff.Diff](t)(diff.Of(ctx, w, "main"))
			equal(t, "patch", after.Patch, before.Patch)
			equal(t, "patch id", after.PatchID, before.PatchID)
			equal(t, "files", len(after.Files), 6)
			again := value[commit.Commit](t)(commit.Create(ctx, w, commit.Request{Message: "x", TargetTip: targetOf(r, t).Tip}))
			equal(t, "empty", again.Empty, true)
			equal(t, "tip", again.Oid, c.Oid)

			candidate := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
			landed := value[integrate.Landing](t)(landTask(t, w, candidate, land.Squash))
			equal(t, "landed tree", landed.Tree, c.Tree)
			equal(t, "main", targetOf(r, t).Tip, landed.New)
			equal(t, "status of main", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
			equal(t, "content", read(t, filepath.Join(r.Root, "file0.txt")), "changed\n")

			must(t, os.Remove(filepath.Join(w.Path, "x.log")))
			ref := value[string](t)(Remove(ctx, w, RemoveRequest{Landed: landedTip(t, w)}))
			equal(t, "rescue", ref, "")
			equal(t, "gone", exists(w.Path), false)
			equal(t, "refs", strings.TrimSpace(gitIn(t, r.Root, "for-each-ref", "--format=%(refname)", "refs/heads/coven", "refs/coven/rescue")), "")
			_, err := r.Find(ctx, "T-1")
			wantIs(t, err, repo.ErrNoWorktree)
			if strings.Contains(gitIn(t, r.Root, "worktree", "list"), w.Path) {
				t.Fatal("git still lists the worktree")
			}
		})
	}
}
