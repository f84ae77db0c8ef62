package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/covendir"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestAddLeftover(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	again := func() *LeftoverError {
		t.Helper()
		_, err := Add(ctx, r, AddRequest{TaskID: "T", Base: "main"})
		return wantError[*LeftoverError](t, err)
	}
	w := add(t, r, "T")
	found := again()
	equal(t, "path", found.Path, w.Path)
	equal(t, "branch", found.Branch, "coven/T")
	equal(t, "unlanded", found.Unlanded, false)

	write(t, filepath.Join(w.Path, "new"), "work")
	equal(t, "uncommitted work", again().Unlanded, true)
	commitAll(t, w, "work")
	equal(t, "committed work", again().Unlanded, true)
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))), land.Squash))
	equal(t, "landed work", again().Unlanded, false)

	must(t, os.RemoveAll(w.Path))
	found = again()
	equal(t, "path of a removed directory", found.Path, "")
	_, err := r.Find(ctx, "T")
	wantIs(t, err, repo.ErrNoWorktree)
	rest := value[*repo.Worktree](t)(Leftover(ctx, r, "T"))
	value[string](t)(Remove(ctx, rest, RemoveRequest{Landed: landedTip(t, rest)}))
	add(t, r, "T")
	_, err = Leftover(ctx, r, "other")
	wantIs(t, err, repo.ErrNoWorktree)
}

func TestAddRefusesForeignDirectory(t *testing.T) {
	r := sample(t)
	write(t, filepath.Join(r.Root, ".coven/worktrees/T/precious"), "bytes")
	_, err := Add(t.Context(), r, AddRequest{TaskID: "T", Base: "main"})
	equal(t, "unlanded", wantError[*LeftoverError](t, err).Unlanded, true)
	rest := value[*repo.Worktree](t)(Leftover(t.Context(), r, "T"))
	if _, err := Remove(t.Context(), rest, RemoveRequest{}); err == nil {
		t.Fatal("removed what could not be stored")
	}
	equal(t, "kept", read(t, filepath.Join(r.Root, ".coven/worktrees/T/precious")), "bytes")
}

// A user's own worktree may have the name that git would give to coven's.
func TestAddBesideWorktreeOfSameName(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "worktree", "add", "-q", "-b", "own", filepath.Join(t.TempDir(), "T"))
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "new"), "work")
	commitAll(t, w, "work")
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
	gitIn(t, r.Root, "rev-parse", "worktrees/T/HEAD")
}

func TestAddFromSparseCheckout(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "sparse-checkout", "set", "--cone", "dir")
	gitIn(t, r.Root, "config", "index.sparse", "true")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	write(t, filepath.Join(r.Root, "dir", "new"), "x")
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-qm", "second")
	w := add(t, r, "T")
	equal(t, "a file outside the cone", exists(filepath.Join(w.Path, ".beads", "issues.jsonl")), true)
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
	gitIn(t, w.Path, "checkout", "-q", ".")
	write(t, filepath.Join(w.Path, ".github", "x"), "work")
	commitAll(t, w, "work")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
	equal(t, "status of main", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
}

func TestAddAndRemoveAtOnce(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for round := range 4 {
				w, err := Add(ctx, r, AddRequest{TaskID: fmt.Sprintf("T %d", worker), Base: "main"})
				if err == nil {
					_, err = content.Tree(ctx, w)
				}
				if err == nil {
					req := RemoveRequest{}
					if round%2 == 0 {
						req.Landed = landedTip(t, w)
					}
					_, err = Remove(ctx, w, req)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	left := value[[]Info](t)(List(ctx, r))
	equal(t, "worktrees left", len(left), 0)
	entries := file.Directories(r.Place().Own)
	equal(t, "trash left", len(entries), 0)
}

func TestEnsureCovenDir(t *testing.T) {
	dir := t.TempDir()
	must(t, covendir.Ensure(dir))
	equal(t, "content", read(t, filepath.Join(dir, ".coven/.gitignore")), covendir.Ignore)
	write(t, filepath.Join(dir, ".coven/.gitignore"), "mine\n")
	must(t, covendir.Ensure(dir))
	equal(t, "a person's own", read(t, filepath.Join(dir, ".coven/.gitignore")), "mine\n")
}

func TestWorktreesAndRefs(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "a b")
	claimFor(t, r, "a b")
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "n"))
	infos := value[[]Info](t)(List(ctx, r))
	equal(t, "count", len(infos), 1)
	want := Info{
		Name: SafeName("a b"), TaskID: "a b", Path: w.Path, Branch: w.Branch,
		Tip: targetOf(r, t).Tip, Present: true, Ready: true,
	}
	equal(t, "info", infos[0], want)
	refs := value[[]Ref](t)(Refs(ctx, r))
	equal(t, "refs", len(refs), 3)
}

// git removes an empty directory of worktrees at any time, such as in git gc: see git worktree prune.
func TestAddWhileGitPrunes(t *testing.T) {
	r := sample(t)
	pruned := 0
	w := r.Worktree("T", r.NewRecord("T", "", ""))
	dir, err := placeAdmin(r, registration{w: w, admin: func(string) error {
		switch pruned++; {
		case pruned > 10:
			return errors.New("the directory is never made again")
		case pruned > 2:
			return nil
		}
		return os.Remove(filepath.Join(r.GitDir, "worktrees"))
	}}, value[string](t)(makeAdmin(w)))
	if err != nil || !file.Exists(filepath.Join(dir, "locked")) {
		t.Errorf("made %q after %d attempts: %v", dir, pruned, err)
	}
}
