package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/files"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

func TestOpenFromAnywhere(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T-1")
	linked := filepath.Join(filepath.Dir(r.Root), filepath.Base(r.Root)+"-linked")
	gitIn(t, r.Root, "worktree", "add", "-q", "-b", "side", linked)
	t.Cleanup(func() { _ = os.RemoveAll(linked) })
	cases := []struct{ dir, checkout, branch string }{
		{r.Root, r.Root, "main"},
		{filepath.Join(r.Root, "dir", "deep"), r.Root, "main"},
		{linked, linked, "side"},
		{filepath.Join(linked, "dir"), linked, "side"},
		{w.Path, r.Root, "main"},
		{filepath.Join(w.Path, "dir"), r.Root, "main"},
	}
	for _, c := range cases {
		got := value[*repo.Repo](t)(repo.Open(ctx, c.dir))
		equal(t, c.dir+" root", got.Root, r.Root)
		equal(t, c.dir+" git dir", got.GitDir, filepath.Join(r.Root, ".git"))
		equal(t, c.dir+" checkout", got.Checkout, c.checkout)
		equal(t, c.dir+" target", value[repo.Target](t)(got.Target(ctx, "")).Branch, c.branch)
		value[*repo.Worktree](t)(got.Find(ctx, "T-1"))
	}
}

func TestOpenWithGitDirElsewhere(t *testing.T) {
	dir := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	main, linked := filepath.Join(dir, "main"), filepath.Join(dir, "linked")
	gitIn(t, dir, "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(dir, "elsewhere"), main)
	write(t, filepath.Join(main, "a"), "a")
	gitIn(t, main, "add", "-A")
	gitIn(t, main, "commit", "-qm", "first")
	r := value[*repo.Repo](t)(repo.Open(t.Context(), main))
	equal(t, "root", r.Root, main)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "b"), "b")
	commitAll(t, w, "b")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
	equal(t, "landed", read(t, filepath.Join(main, "b")), "b")
	gitIn(t, main, "config", "core.worktree", "../main")
	gitIn(t, main, "worktree", "add", "-q", linked)
	equal(t, "root from linked", value[*repo.Repo](t)(repo.Open(t.Context(), linked)).Root, main)
}

// A bare repository works from each of its checkouts. coven's own files are in the first checkout in which
// it was run.
func TestBare(t *testing.T) {
	ctx := t.Context()
	dir := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	gitIn(t, dir, "clone", "-q", "--bare", sample(t).Root, ".bare")
	write(t, filepath.Join(dir, ".git"), "gitdir: ./.bare\n")
	main, side := filepath.Join(dir, "main"), filepath.Join(dir, "side")
	gitIn(t, dir, "worktree", "add", "-q", main, "main")
	gitIn(t, dir, "worktree", "add", "-q", "-b", "side", side)
	for _, from := range []string{dir, filepath.Join(dir, ".bare")} {
		_, err := repo.Open(ctx, from)
		equal(t, "named", wantError[*repo.BareError](t, err).Checkouts[0], main)
	}
	r := value[*repo.Repo](t)(repo.Open(ctx, main))
	other := value[*repo.Repo](t)(repo.Open(ctx, side))
	equal(t, "root", r.Root, main)
	equal(t, "root from side", other.Root, main)
	equal(t, "target from side", value[repo.Target](t)(other.Target(ctx, "")).Branch, "side")
	equal(t, "checkouts", strings.Join(value[[]string](t)(r.Checkouts()), " "), main+" "+side)
	equal(t, "ignores", value[bool](t)(r.Ignores(ctx, "x.log")), true)
	w, c := ready(t, other, "T")
	equal(t, "worktree", w.Path, filepath.Join(main+".coven", "T"))
	equal(t, "root from the worktree", value[*repo.Repo](t)(repo.Open(ctx, w.Path)).Root, main)
	write(t, filepath.Join(main, "file5.txt"), "dirty\n")
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	equal(t, "main", gitIn(t, main, "status", "--porcelain"), " M file5.txt\n?? .coven/")
	equal(t, "landed", read(t, filepath.Join(main, "new.txt")), "landed T\n")
	equal(t, "side", gitIn(t, side, "status", "--porcelain"), "")
	value[string](t)(Remove(ctx, w, RemoveRequest{Landed: landedTip(t, w)}))
	moved := filepath.Join(dir, "moved")
	gitIn(t, dir, "worktree", "move", main, moved)
	equal(t, "root after it was moved", value[*repo.Repo](t)(repo.Open(ctx, side)).Root, moved)
	equal(t, "root after that", value[*repo.Repo](t)(repo.Open(ctx, side)).Root, moved)
	must(t, os.RemoveAll(moved))
	equal(t, "root when the first is gone", value[*repo.Repo](t)(repo.Open(ctx, side)).Root, side)
}

// If several processes start at the same time, exactly one determines the checkout in which coven works.
func TestBareTogether(t *testing.T) {
	ctx := t.Context()
	dir := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	gitIn(t, dir, "clone", "-q", "--bare", sample(t).Root, ".bare")
	tops := []string{filepath.Join(dir, "main"), filepath.Join(dir, "side")}
	bare := filepath.Join(dir, ".bare")
	gitIn(t, bare, "worktree", "add", "-q", tops[0], "main")
	gitIn(t, bare, "worktree", "add", "-q", "-b", "side", tops[1])
	for range 10 {
		must(t, os.RemoveAll(filepath.Join(bare, "coven")))
		roots := make([]string, len(tops))
		var all sync.WaitGroup
		for i, top := range tops {
			all.Go(func() {
				if r, err := repo.Open(ctx, top); err == nil {
					roots[i] = r.Root
				}
			})
		}
		all.Wait()
		if roots[0] == "" || roots[0] != roots[1] {
			t.Fatalf("two covens work in %q", roots)
		}
	}
}

// The agent controls a task's git directory: a named pipe there blocks no operation.
func TestPipeInTheGitDirectory(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	file := filepath.Join(w.Admin, "gitdir")
	must(t, os.Remove(file))
	must(t, syscall.Mkfifo(file, 0o600))
	equal(t, "checkouts", strings.Join(value[[]string](t)(r.Checkouts()), " "), r.Root)
}

func TestOpenErrors(t *testing.T) {
	ctx := t.Context()
	plain := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(plain))
	_, err := repo.Open(ctx, plain)
	wantIs(t, err, repo.ErrNotRepository)

	bare := t.TempDir()
	gitIn(t, bare, "init", "-q", "--bare")
	_, err = repo.Open(ctx, bare)
	wantIs(t, err, repo.ErrBare)
	equal(t, "no checkout", len(wantError[*repo.BareError](t, err).Checkouts), 0)

	empty := t.TempDir()
	gitIn(t, empty, "init", "-q", "-b", "main")
	_, err = repo.Open(ctx, empty)
	wantIs(t, err, repo.ErrNoCommits)

	r := sample(t)
	_, err = repo.Open(ctx, r.GitDir)
	wantIs(t, err, repo.ErrNotRepository)
}

func TestTarget(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	gitIn(t, r.Root, "branch", "release/1")
	got := value[repo.Target](t)(r.Target(ctx, "release/1"))
	equal(t, "ref", got.Ref, "refs/heads/release/1")
	equal(t, "tip", got.Tip, gitIn(t, r.Root, "rev-parse", "main"))
	equal(t, "full name", value[repo.Target](t)(r.Target(ctx, "refs/heads/main")).Branch, "main")
	for _, unknown := range []string{"nope", "main~0", "release", "*", "-d", "main^{commit}"} {
		_, err := r.Target(ctx, unknown)
		wantIs(t, err, repo.ErrUnknownBranch)
	}
	add(t, r, "T")
	_, err := r.Target(ctx, "coven/T")
	wantIs(t, err, repo.ErrTaskBranch)
	equal(t, "branches", strings.Join(value[[]string](t)(r.Branches(ctx)), " "), "main release/1")
	gitIn(t, r.Root, "checkout", "-q", "--detach")
	_, err = r.Target(ctx, "")
	wantIs(t, err, repo.ErrDetached)
	equal(t, "onto", value[repo.Target](t)(r.Target(ctx, "main")).Branch, "main")
}

func TestUncommitted(t *testing.T) {
	r := sample(t)
	write(t, filepath.Join(r.Root, "file0.txt"), "dirty")
	write(t, filepath.Join(r.Root, "new\n.txt"), "new")
	write(t, filepath.Join(r.Root, "x.log"), "ignored")
	write(t, filepath.Join(r.Root, ".beads", "more"), "tracker")
	write(t, filepath.Join(r.Root, ".coven", "config.yaml"), "ours")
	got := value[[]string](t)(files.Uncommitted(t.Context(), r))
	if want := []string{"file0.txt", "new\n.txt"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestClaim(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	first := claimFor(t, r, "a task")
	_, err := claim.Acquire(ctx, r, claim.Claim{Task: "a task", Holder: "other"}, "")
	wantIs(t, err, claim.ErrClaimed)
	equal(t, "present", wantError[*claim.ClaimedError](t, err).Present, first)
	second := value[claim.Held](t)(claim.Acquire(ctx, r, claim.Claim{Task: "a task", Holder: "other", Attempt: 2}, first.Oid))
	equal(t, "read back", value[claim.Held](t)(claim.Of(ctx, r, "a task")), second)
	wantIs(t, claim.Release(ctx, r, "a task", first.Oid), claim.ErrClaimed)
	must(t, claim.Release(ctx, r, "a task", second.Oid))
	_, err = claim.Of(ctx, r, "a task")
	wantIs(t, err, claim.ErrNoClaim)
	_, err = claim.Acquire(ctx, r, claim.Claim{Task: "a task"}, second.Oid)
	wantIs(t, err, claim.ErrNoClaim)
	wantIs(t, claim.Release(ctx, r, "a task", second.Oid), claim.ErrNoClaim)
}

func TestClaimRace(t *testing.T) {
	r := sample(t)
	const runs = 8
	won := make(chan bool, runs)
	for range runs {
		go func() {
			_, err := claim.Acquire(t.Context(), r, claim.Claim{Task: "T", Holder: "h", Session: "s"}, "")
			won <- err == nil
		}()
	}
	winners := 0
	for range runs {
		if <-won {
			winners++
		}
	}
	equal(t, "winners", winners, 1)
}
