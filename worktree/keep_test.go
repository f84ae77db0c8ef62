package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// pruned runs a garbage collection that removes all unreachable objects.
func pruned(t *testing.T, r *repo.Repo) {
	t.Helper()
	gitIn(t, r.Root, "reflog", "expire", "--expire=now", "--all")
	gitIn(t, r.Root, "gc", "-q", "--prune=now")
}

func keptRefs(t *testing.T, r *repo.Repo) string {
	t.Helper()
	return gitIn(t, r.Root, "for-each-ref", "--format=%(refname)", "refs/coven/keep")
}

// The commit of an intent exists until the landing is settled.
func TestIntentSurvivesGC(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	write(t, filepath.Join(r.Root, "new.txt"), "mine\n") // in the way
	intent := integrate.Landing{}
	claim := claimFor(t, r, "T")
	request := land.Request{
		Landing: c, Message: "m", ClaimOid: claim.Oid,
		Journal: journalFunc(func(i integrate.Landing) error { intent = i; return nil }),
	}
	_, err := land.Land(t.Context(), w, request)
	equal(t, "in the way", wantError[*land.CheckoutError](t, err).Path, r.Root)
	equal(t, "kept", keptRefs(t, r), "refs/coven/keep/T/landing")
	pruned(t, r)
	gitIn(t, r.Root, "cat-file", "-e", intent.New+"^{tree}")
	equal(t, "landed", value[bool](t)(land.RecoverLanding(t.Context(), r, intent)), false)
	must(t, os.Remove(filepath.Join(r.Root, "new.txt")))
	value[integrate.Landing](t)(land.Land(t.Context(), w, request))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	equal(t, "kept at the end", keptRefs(t, r), "")
}

// If the ref of a landing was deleted and git gc removed the commit, it is created again.
func TestRecoverWithoutTheCommit(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	gone := integrate.Landing{Task: "T", Target: repo.Target{Ref: "refs/heads/main"}, Old: c.Old, New: "0123456789012345678901234567890123456789", Tree: c.Tree}
	before := status(t, r.Root)
	equal(t, "landed", value[bool](t)(land.RecoverLanding(t.Context(), r, gone)), false)
	equal(t, "checkout", status(t, r.Root), before)
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
}

// The merge of an interrupted integration still exists when the integration is resumed.
func TestIntegrationSurvivesGC(t *testing.T) {
	for name, kept := range map[string]bool{"kept": true, "its ref is gone": false} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w := add(t, r, "T")
			write(t, filepath.Join(w.Path, "a.txt"), "a\n")
			commitAll(t, w, "a")
			onMain(t, r, "b.txt", "b\n")
			merge := gitIn(t, r.Root, "commit-tree", "-p", "coven/T", "-p", "main", "-m", "m",
				gitIn(t, r.Root, "merge-tree", "--write-tree", "coven/T", "main"))
			if kept {
				must(t, w.Keep(t.Context(), names.KeepMove, merge))
			}
			must(t, file.WriteJSON(integrate.MovePath(w), integrate.Move{Old: gitIn(t, r.Root, "rev-parse", "coven/T"), New: merge}))
			pruned(t, r)
			c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
			equal(t, "it resumes with the merge", c.Tip == merge, kept)
			value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
		})
	}
}

// An integration that merges creates a ref before its record is written.
func TestIntegrationIsKept(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a.txt"), "a\n")
	commitAll(t, w, "a")
	onMain(t, r, "b.txt", "b\n")
	c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	equal(t, "kept", gitIn(t, r.Root, "rev-parse", names.KeepRef("T", names.KeepMove)), c.Tip)
}

// The target's commit in a conflicted merge exists when a resolver finishes the merge, regardless of later
// changes of the target.
func TestConflictSurvivesGC(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "ours\n")
	commitAll(t, w, "ours")
	onMain(t, r, "file0.txt", "theirs\n")
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s"))
	gitIn(t, r.Root, "reset", "-q", "--hard", "HEAD~1")
	pruned(t, r)
	write(t, filepath.Join(w.Path, "file0.txt"), "both\n")
	value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{Message: "resolve", Merge: c.TargetTip}))
}

// A removed worktree leaves no such ref, even if the removal was interrupted.
func TestRemoveDropsKept(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	for _, purpose := range []string{names.KeepLanding, names.KeepMove, names.KeepTarget} {
		must(t, w.Keep(t.Context(), purpose, c.Old))
	}
	value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
	equal(t, "kept refs", keptRefs(t, r), "")
	_, err := r.Find(t.Context(), "T")
	if !errors.Is(err, repo.ErrNoWorktree) {
		t.Fatal(err)
	}
}
