package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
)

// exported exports a rescue and returns the directory.
func exported(t *testing.T, r *repo.Repo, ref string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exported")
	info := value[rescue.Info](t)(rescue.Find(t.Context(), r, ref))
	must(t, rescue.Export(t.Context(), r, info, dir))
	return dir
}

// Content that exists only in the git directory of a worktree is stored before it is removed: staged
// content, a merge in progress, and commits on the agent's own branches, in its stash, and on no branch.
// The private common directory of a killed coven also contains such commits.
func TestRemoveStoresGitWork(t *testing.T) {
	for name, isolated := range map[string]bool{"isolated": true, "not isolated": false} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			ctx := t.Context()
			w := add(t, r, "T")
			if isolated {
				must(t, isolation.Begin(ctx, w))
			}
			commit := func(file, text string) string {
				t.Helper()
				write(t, filepath.Join(w.Path, file), text)
				gitIn(t, w.Path, "add", file)
				gitIn(t, w.Path, "commit", "-qm", text)
				return gitIn(t, w.Path, "rev-parse", "HEAD")
			}
			commits := map[string]string{"branch": commit("mine", "mine")}
			gitIn(t, w.Path, "checkout", "-qb", "theirs", "HEAD~")
			commits["other branch"] = commit("mine", "theirs")
			gitIn(t, w.Path, "checkout", "-q", "--detach")
			commits["no branch"] = commit("detached", "detached")
			write(t, filepath.Join(w.Path, "detached"), "stashed\n")
			gitIn(t, w.Path, "stash", "push", "-q")
			commits["stash"] = gitIn(t, w.Path, "rev-parse", "stash")
			write(t, filepath.Join(w.Path, "detached"), "stashed again\n")
			gitIn(t, w.Path, "stash", "push", "-q")
			commits["top of the stash"] = gitIn(t, w.Path, "rev-parse", "stash")
			merge := exec.Command("git", "merge", w.Branch)
			merge.Dir = w.Path
			if out, err := merge.CombinedOutput(); err == nil || !strings.Contains(string(out), "CONFLICT") {
				t.Fatalf("no conflict: %v %s", err, out)
			}
			write(t, filepath.Join(w.Path, "staged"), "only staged")
			gitIn(t, w.Path, "add", "staged")
			must(t, os.Remove(filepath.Join(w.Path, "staged")))

			ref := value[string](t)(Remove(ctx, w, RemoveRequest{Note: "killed"}))
			equal(t, "gone", exists(w.Admin), false)
			kept := gitIn(t, r.Root, "rev-list", "--all", "--reflog")
			if isolated {
				kept += unbundled(t, r, ref)
			}
			for what, oid := range commits {
				if !strings.Contains(kept, oid) {
					t.Errorf("the commit of %s is lost", what)
				}
			}
			dir := exported(t, r, ref)
			for file, want := range map[string]string{
				"staged/0/staged": "only staged", "staged/2/mine": "theirs", "MERGE_HEAD": commits["branch"] + "\n",
			} {
				equal(t, file, read(t, filepath.Join(dir, rescue.GitDirName, file)), want)
			}
		})
	}
}

// After a landing, nothing is stored if everything has landed. Staged content, and files that coven does
// not commit, are stored.
func TestRemoveLandedKeepsGitWork(t *testing.T) {
	cases := map[string]struct {
		leave func(w *repo.Worktree)
		file  string // in the rescue, empty if there is none
	}{
		"nothing": {func(w *repo.Worktree) { gitIn(t, w.Path, "status") }, ""},
		"reserved": {func(w *repo.Worktree) {
			write(t, filepath.Join(w.Path, ".beads/issues.jsonl"), "noted")
		}, ".beads/issues.jsonl"},
		"staged": {func(w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "staged"), "noted")
			gitIn(t, w.Path, "add", "staged")
			must(t, os.Remove(filepath.Join(w.Path, "staged")))
		}, rescue.GitDirName + "/staged/0/staged"},
		"another task's branch": {func(w *repo.Worktree) { // it was copied, then landed and was deleted
			ctx := t.Context()
			other := add(t, w.Repo, "other")
			write(t, filepath.Join(other.Path, "other"), "x")
			commitAll(t, other, "other")
			must(t, isolation.Begin(ctx, w))
			must(t, isolation.TakeCommits(ctx, w))
			value[string](t)(Remove(ctx, other, RemoveRequest{Landed: landedTip(t, other)}))
			must(t, isolation.Begin(ctx, w))
			must(t, isolation.TakeCommits(ctx, w))
		}, ""},
		"deleted": {func(w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "staged"), "noted")
			gitIn(t, w.Path, "add", "staged")
			must(t, os.RemoveAll(w.Path))
		}, "staged"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, landing := ready(t, r, "T")
			value[integrate.Landing](t)(landTask(t, w, landing, land.Squash))
			c.leave(w)
			ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landing.Tip}))
			if ref != "" && c.file == "" {
				t.Fatalf("stored:\n%s", gitIn(t, r.Root, "log", "--stat", "--graph", ref))
			}
			equal(t, "stored", ref != "", c.file != "")
			if c.file != "" {
				equal(t, c.file, read(t, filepath.Join(exported(t, r, ref), c.file)), "noted")
			}
		})
	}
}

// A damaged index is stored as a file, and so are objects that git refuses: they do not prevent the removal
// of a worktree.
func TestRemoveStoresDamagedGitWork(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Admin, "index"), "DIRC is not all")
	ref := value[string](t)(Remove(ctx, w, RemoveRequest{}))
	equal(t, "index", read(t, filepath.Join(exported(t, r, ref), rescue.GitDirName, "index")), "DIRC is not all")

	w = add(t, r, "T")
	must(t, isolation.Begin(ctx, w))
	gitIn(t, w.Path, "checkout", "-qb", "own")
	gitIn(t, w.Path, "commit", "-q", "--allow-empty", "-m", "own")
	own := gitIn(t, w.Path, "rev-parse", "HEAD")
	must(t, os.Symlink("/nowhere", isolation.PrivatePath(w, "objects", "link")))
	ref = value[string](t)(Remove(ctx, w, RemoveRequest{}))
	object := filepath.Join(exported(t, r, ref), rescue.GitDirName, "common/objects", own[:2], own[2:])
	equal(t, "object", exists(object), true)
}

// A detached HEAD stays at its commit when the isolation of its worktree ends. While its commit is not in
// the repository, the commits of other tasks can still be taken.
func TestCollectDetachedHead(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w, other := add(t, r, "T"), add(t, r, "other")
	for _, tree := range []*repo.Worktree{w, other} {
		must(t, isolation.Begin(ctx, tree))
		gitIn(t, tree.Path, "commit", "-q", "--allow-empty", "-m", "work of "+tree.TaskID)
	}
	gitIn(t, w.Path, "checkout", "-q", "--detach")
	gitIn(t, w.Path, "commit", "-q", "--allow-empty", "-m", "off the branch")
	head := gitIn(t, w.Path, "rev-parse", "HEAD")
	must(t, isolation.TakeCommits(ctx, other))
	equal(t, "other", gitIn(t, r.Root, "log", "-1", "--format=%s", other.Branch), "work of other")
	must(t, isolation.TakeCommits(ctx, w))
	equal(t, "branch", gitIn(t, r.Root, "log", "-1", "--format=%s", w.Branch), "work of T")
	equal(t, "HEAD", gitIn(t, w.Path, "rev-parse", "HEAD"), head)
}
