package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
)

func nobody(string) bool { return false }

// stales lists leftovers as "kind name" lines.
func stales(t *testing.T, r *repo.Repo) string {
	t.Helper()
	var out []string
	for _, s := range value[[]Stale](t)(FindStale(t.Context(), r, nobody)) {
		if s.Text == "" || (s.Path == "") == (s.Ref == "") {
			t.Errorf("incomplete: %+v", s)
		}
		out = append(out, s.Kind+" "+filepath.Base(s.Path+s.Ref))
	}
	return strings.Join(out, "\n")
}

func backdate(t *testing.T, path string) {
	t.Helper()
	past := time.Now().Add(-2 * staleAge)
	must(t, os.Chtimes(path, past, past))
}

// For each kind of leftover: how it is created, that nothing else is listed, its rescue, and that only
// the leftover is removed.
func TestStaleKinds(t *testing.T) {
	cases := map[string]struct {
		leave   func(t *testing.T, r *repo.Repo, w *repo.Worktree) (path string)
		rescued string // path:content in the rescue, "" for none
	}{
		StaleRegistration: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			write(t, filepath.Join(w.Path, "staged"), "only staged")
			gitIn(t, w.Path, "add", "staged")
			must(t, os.RemoveAll(w.Path))
			return w.Admin
		}, "staged:only staged"},
		StaleDirectory: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			stray := filepath.Join(r.Place().Own, "stray one")
			write(t, filepath.Join(stray, "sub/only-here"), "x")
			write(t, filepath.Join(stray, "y.log"), "ignored")
			return stray
		}, "y.log:ignored"},
		StaleRecord: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			gitIn(t, r.Root, "worktree", "remove", "--force", w.Path)
			gitIn(t, r.Root, "branch", "-qD", w.Branch)
			return w.StatePath()
		}, ""},
		StaleBranch: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			write(t, filepath.Join(w.Path, "work"), "w")
			commitAll(t, w, "work")
			gitIn(t, r.Root, "worktree", "remove", "--force", w.Path)
			must(t, os.RemoveAll(w.StatePath()))
			return names.HeadsPrefix + w.Branch
		}, "work:w"},
		StaleTemporary: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			dir := w.StatePath("op-123")
			write(t, filepath.Join(dir, "index.lock"), "")
			backdate(t, dir)
			return dir
		}, ""},
		StaleTrash: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			dir := filepath.Join(r.Place().Own, pool.TrashPrefix+"T-1")
			write(t, filepath.Join(dir, "a"), "a")
			return dir
		}, ""},
		StaleIntegration: {func(t *testing.T, r *repo.Repo, w *repo.Worktree) string {
			write(t, filepath.Join(w.Path, "a"), "a")
			commitAll(t, w, "a")
			claimFor(t, r, "T")
			onMain(t, r, "b", "b")
			killAt(t, actorCommand(r.Root, "T", filepath.Join(t.TempDir(), "intent"), land.Squash), "integrate.worktree")
			for _, entry := range value[[]os.DirEntry](t)(os.ReadDir(w.StatePath())) {
				if strings.HasPrefix(entry.Name(), content.OperationPrefix) {
					must(t, os.RemoveAll(w.StatePath(entry.Name())))
				}
			}
			backdate(t, integrate.MovePath(w))
			return integrate.MovePath(w)
		}, ""},
	}
	for kind, c := range cases {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ctx := t.Context()
			other := add(t, r, "other")
			write(t, filepath.Join(other.Path, "a"), "a")
			w := add(t, r, "T")
			equal(t, "before", stales(t, r), "")
			path := c.leave(t, r, w)
			equal(t, "left over", stales(t, r), kind+" "+filepath.Base(path))
			s := value[[]Stale](t)(FindStale(ctx, r, nobody))[0]
			equal(t, "where", s.Path+s.Ref, path)
			if s.Task != "" {
				owned := value[[]Stale](t)(FindStale(ctx, r, func(task string) bool { return task == s.Task }))
				equal(t, "owned", len(owned), 0)
			}
			before := contents(t, other.Path) + status(t, r.Root)
			ref := value[string](t)(Clear(ctx, r, s))
			equal(t, "after", stales(t, r), "")
			equal(t, "gone", exists(path), false)
			equal(t, "the rest", contents(t, other.Path)+status(t, r.Root), before)
			if name, content, found := strings.Cut(c.rescued, ":"); found {
				equal(t, "rescued", rescued(t, r, ref, name), content)
			} else {
				equal(t, "rescue", ref, "")
			}
			_, err := Clear(ctx, r, s)
			wantIs(t, err, ErrNotStale)
			value[*repo.Worktree](t)(r.Find(ctx, "other"))
		})
	}
}

// Coven 0.1.0 renamed large worktrees that had landed, and searched them later for unsaved content. If it
// was killed before that, their files are left over.
func TestStaleOfUnexaminedWorktrees(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	dir := filepath.Join(r.Root, names.WorktreesDir, unexaminedDir, "T-JD4NX6QA")
	write(t, filepath.Join(dir, "only-here"), "x")
	must(t, os.Symlink(t.TempDir(), filepath.Join(filepath.Dir(dir), "link")))
	write(t, r.StatePath("unexamined", "T-JD4NX6QA", "record.json"), `{"task":"T"}`)
	gitIn(t, r.Root, "update-ref", unexaminedPrefix+"T-JD4NX6QA", "main")
	s := value[[]Stale](t)(FindStale(ctx, r, nobody))
	equal(t, "left over", stales(t, r), "directory T-JD4NX6QA")
	ref := value[string](t)(Clear(ctx, r, s[0]))
	equal(t, "stored", rescued(t, r, ref, "only-here"), "x")
	equal(t, "after", stales(t, r), "")
	equal(t, "record", exists(r.StatePath("unexamined", "T-JD4NX6QA")), false)
	equal(t, "refs", gitIn(t, r.Root, "for-each-ref", unexaminedPrefix), "")
}

func TestClearBranchThatIsMerged(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "branch", "coven/T")
	s := value[[]Stale](t)(FindStale(t.Context(), r, nobody))
	equal(t, "ref", s[0].Ref, "refs/heads/coven/T")
	equal(t, "rescue", value[string](t)(Clear(t.Context(), r, s[0])), "")
	equal(t, "left", gitIn(t, r.Root, "branch", "--list", "coven/*"), "")
}

// Files that are not coven's or are in use are never listed, and Clear checks again.
func TestStaleSpares(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	elsewhere := filepath.Join(value[string](t)(filepath.EvalSymlinks(t.TempDir())), "gone")
	gitIn(t, r.Root, "worktree", "add", "-q", "-b", "person", elsewhere)
	must(t, os.RemoveAll(elsewhere)) // on a disk that is not mounted
	must(t, r.EnsurePlace())
	inside := filepath.Join(r.Place().Own, "mine")
	gitIn(t, r.Root, "worktree", "add", "-q", "-b", "inside", inside)
	gitIn(t, r.Root, "branch", "coven/looked-at")
	look := filepath.Join(t.TempDir(), "look")
	gitIn(t, r.Root, "worktree", "add", "-q", look, "coven/looked-at")
	gitIn(t, r.Root, "branch", "coven/not/ours")
	parked := add(t, r, "parked")
	gitIn(t, r.Root, "worktree", "remove", "--force", parked.Path) // Recreate can restore it
	w := add(t, r, "busy")
	ix := value[*content.Index](t)(content.Open(w, w.Git(), content.CommitIndex))
	defer ix.Drop()
	backdate(t, ix.Dir)
	write(t, w.StatePath(".fresh123"), "")
	equal(t, "stale", stales(t, r), "")
	for _, s := range []Stale{
		{Kind: StaleDirectory, Task: "mine", Path: inside},
		{Kind: StaleDirectory, Task: "busy", Path: w.Path},
		{Kind: StaleTrash, Path: r.Root},
		{Kind: StaleBranch, Task: "x", Ref: "refs/heads/main"},
		{Kind: StaleBranch, Task: "looked-at", Ref: "refs/heads/coven/looked-at"},
		{Kind: StaleRegistration, Task: "gone", Path: filepath.Join(r.GitDir, "worktrees", "gone")},
		{Kind: StaleIntegration, Task: "busy", Path: w.StatePath("task.json")},
	} {
		_, err := Clear(ctx, r, s)
		wantIs(t, err, ErrNotStale)
	}
	equal(t, "registered", exists(filepath.Join(r.GitDir, "worktrees", "gone")), true)
	_, _, err := Recreate(ctx, r, "parked", "s")
	must(t, err)
}

// The task's ID is taken from a claim if no record contains the name.
func TestStaleKnowsClaims(t *testing.T) {
	r := sample(t)
	claimFor(t, r, "a / b")
	gitIn(t, r.Root, "branch", names.Branch("a / b"))
	asked := ""
	all := value[[]Stale](t)(FindStale(t.Context(), r, func(task string) bool { asked = task; return true }))
	equal(t, "stale", len(all), 0)
	equal(t, "asked for", asked, "a / b")
}

// Files that a running operation uses are not listed.
func TestStaleWhileAdding(t *testing.T) {
	r := sample(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			w, err := Add(context.Background(), r, AddRequest{TaskID: fmt.Sprint("t", i%2), Base: "main"})
			if err == nil {
				_, err = Remove(context.Background(), w, RemoveRequest{})
			}
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for range 40 {
		for _, s := range value[[]Stale](t)(FindStale(t.Context(), r, nobody)) {
			if _, err := Clear(t.Context(), r, s); err != nil && s.Kind != StaleTrash {
				wantIs(t, err, ErrNotStale)
			}
		}
	}
	stop()
	must(t, <-ended)
	equal(t, "left", stales(t, r), "")
}

// Killed between storing and removing, Clear can be repeated.
func TestClearSurvivesKill(t *testing.T) {
	for _, point := range []string{"clear.stored", "clear.trashed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ctx := t.Context()
			must(t, r.EnsurePlace())
			stray := filepath.Join(r.Place().Own, "stray")
			write(t, filepath.Join(stray, "only-here"), "x")
			killAt(t, actorCommand(r.Root, "", point, ""), point)
			rescues := value[[]rescue.Info](t)(rescue.List(ctx, r, "stray"))
			equal(t, "rescued", rescued(t, r, rescues[0].Ref, "only-here"), "x")
			for _, entry := range value[[]os.DirEntry](t)(os.ReadDir(r.StatePath("tasks", content.ScratchName))) {
				backdate(t, r.StatePath("tasks", content.ScratchName, entry.Name()))
			}
			for _, s := range value[[]Stale](t)(FindStale(ctx, r, nobody)) {
				value[string](t)(Clear(ctx, r, s))
			}
			equal(t, "left", stales(t, r), "")
			equal(t, "gone", exists(stray), false)
		})
	}
}

// A landing was killed while it changed the checkout, and its session no longer exists: it is listed unless
// its task has an owner, and Clear moves the checkout back.
func TestClearLanding(t *testing.T) {
	for point, landed := range map[string]bool{"checkout.step.after:2": false, "land.ref.after": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ready(t, r, "T")
			claimFor(t, r, "T")
			personWorks(t, r.Root)
			before := status(t, r.Root)
			killAt(t, actorCommand(r.Root, "T", filepath.Join(t.TempDir(), "intent"), land.Squash), point)
			tip := targetOf(r, t).Tip
			found := value[[]Stale](t)(FindStale(t.Context(), r, nobody))
			equal(t, "found", len(found), 1)
			equal(t, "kind", found[0].Kind+" of "+found[0].Task+" at "+found[0].Path, StaleLanding+" of T at "+movePathOf(r))
			equal(t, "owned", len(value[[]Stale](t)(FindStale(t.Context(), r, func(task string) bool { return task == "T" }))), 0)
			equal(t, "coven's lock", land.LeftByLanding(filepath.Join(r.GitDir, "index.lock")), true)
			equal(t, "rescued", value[string](t)(Clear(t.Context(), r, found[0])), "")
			equal(t, "left", stales(t, r), "")
			equal(t, "target", targetOf(r, t).Tip, tip)
			if landed {
				equal(t, "checkout", read(t, filepath.Join(r.Root, "file0.txt")), "landed T\n")
			} else {
				equal(t, "checkout", status(t, r.Root), before)
			}
			noLocks(t, r.GitDir)
		})
	}
}

// The next landing on the target, by another task, finishes the interrupted one.
func TestLandAfterKilledLanding(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"checkout.locked", "checkout.step.after:2", "land.ref.before", "land.ref.after", "checkout.unlocked"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ready(t, r, "T")
			claimFor(t, r, "T")
			other := add(t, r, "other")
			write(t, filepath.Join(other.Path, "file2.txt"), "landed other\n")
			commitAll(t, other, "work of other")
			claimFor(t, r, "other")
			personWorks(t, r.Root)
			intent := filepath.Join(t.TempDir(), "intent")
			killAt(t, actorCommand(r.Root, "T", intent, land.Squash), point)
			must(t, integrateAndLand(t.Context(), other, land.Squash, fileJournal{filepath.Join(t.TempDir(), "i")}))
			equal(t, "other", read(t, filepath.Join(r.Root, "file2.txt")), "landed other\n")
			noLocks(t, r.GitDir)
			landed := recoverFrom(t, r, intent)
			equal(t, "landed", landed, point == "land.ref.after" || point == "checkout.unlocked")
			equal(t, "status", gitIn(t, r.Root, "status", "--porcelain"), " M file3.txt\nMM file4.txt\n?? .coven/\n?? untracked.txt")
		})
	}
}
