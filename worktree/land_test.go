package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// ready creates a task whose branch changes file0.txt, deletes file1.txt and adds new.txt.
func ready(t testing.TB, r *repo.Repo, task string) (*repo.Worktree, integrate.Landing) {
	t.Helper()
	w := add(t, r, task)
	write(t, filepath.Join(w.Path, "file0.txt"), "landed "+task+"\n")
	write(t, filepath.Join(w.Path, "new.txt"), "landed "+task+"\n")
	must(t, os.Remove(filepath.Join(w.Path, "file1.txt")))
	commitAll(t, w, "work of "+task)
	return w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
}

func TestLandStrategies(t *testing.T) {
	cases := map[land.Strategy]string{
		land.Squash: "land T",
		land.Merge:  "land T\nwork of T\nsecond",
		land.Rebase: "second\nwork of T",
	}
	for strategy, want := range cases {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			w, _ := ready(t, r, "T")
			write(t, filepath.Join(w.Path, "file3.txt"), "second\n")
			commitAll(t, w, "second")
			onMain(t, r, "file7.txt", "meanwhile\n")
			onMain(t, r, ".beads/issues.jsonl", "v2\n")
			old := targetOf(r, t).Tip
			c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
			landed := value[integrate.Landing](t)(landTask(t, w, c, strategy))
			equal(t, "tip", targetOf(r, t).Tip, landed.New)
			equal(t, "tree", gitIn(t, r.Root, "rev-parse", "main^{tree}"), c.Tree)
			equal(t, "main", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
			log := gitIn(t, r.Root, "log", "--format=%s", "--topo-order", "--no-merges", old+"..main")
			if strategy == land.Merge {
				log = gitIn(t, r.Root, "log", "-1", "--format=%s", "main") + "\n" +
					gitIn(t, r.Root, "log", "--reverse", "--format=%s", "--topo-order", "--no-merges", old+"..main")
			}
			equal(t, "log", log, want)
			equal(t, "first parent", gitIn(t, r.Root, "merge-base", "main", old), old)
			again := value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), strategy))
			equal(t, "already", again.New == again.Old, true)
			equal(t, "and at the tip", again.New, landed.New)
		})
	}
}

func TestLandRebaseKeepsAuthors(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a"), "a")
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-q", "--author=Élise <e@example.com>", "--date=2020-01-02T03:04:05+0100", "-m", "subject\n\nbody")
	onMain(t, r, "b", "b")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Rebase))
	equal(t, "commit", gitIn(t, r.Root, "log", "-1", "--format=%an %ae %aI %B"), "Élise e@example.com 2020-01-02T03:04:05+01:00 subject\n\nbody\n")
}

func TestLandRefusals(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w, c := ready(t, r, "T")
	_, err := landTask(t, w, c, "octopus")
	if err == nil || !strings.Contains(err.Error(), "octopus") {
		t.Fatalf("unknown strategy: %v", err)
	}
	_, err = land.Land(ctx, w, land.Request{Landing: c, Message: "m", Journal: fileJournal{filepath.Join(t.TempDir(), "i")}})
	if err == nil {
		t.Fatal("landed without a claim")
	}
	bad := c
	bad.Tree = gitIn(t, w.Path, "rev-parse", "HEAD:dir")
	_, err = landTask(t, w, bad, land.Squash)
	if err == nil {
		t.Fatal("landed a tree without the tracker's file")
	}
	held := value[claim.Held](t)(claim.Of(ctx, r, "T"))
	value[claim.Held](t)(claim.Acquire(ctx, r, claim.Claim{Task: "T", Holder: "thief"}, held.Oid))
	request := land.Request{Landing: c, Message: "m", ClaimOid: held.Oid, Journal: fileJournal{filepath.Join(t.TempDir(), "i")}}
	_, err = land.Land(ctx, w, request)
	wantIs(t, err, claim.ErrClaimLost)
	write(t, filepath.Join(w.Path, "more"), "more")
	commitAll(t, w, "more")
	_, err = landTask(t, w, c, land.Squash)
	wantIs(t, err, land.ErrBranchMoved)
	onMain(t, r, "file7.txt", "moved\n")
	_, err = landTask(t, w, c, land.Squash)
	wantIs(t, err, land.ErrTargetMoved)
	equal(t, "main", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
}

// A journalFunc runs between recording the intent and moving the target.
type journalFunc func(integrate.Landing) error

func (f journalFunc) Intent(intent integrate.Landing) error { return f(intent) }

// The transaction detects changes that happen after the first check, and the checkout is moved back.
func TestLandFence(t *testing.T) {
	fences := map[string]struct {
		want error
		act  func(t *testing.T, r *repo.Repo, held claim.Held)
	}{
		"claim taken": {claim.ErrClaimLost, func(t *testing.T, r *repo.Repo, held claim.Held) {
			value[claim.Held](t)(claim.Acquire(t.Context(), r, claim.Claim{Task: "T", Holder: "thief"}, held.Oid))
		}},
		"claim gone": {claim.ErrClaimLost, func(t *testing.T, r *repo.Repo, held claim.Held) {
			must(t, claim.Release(t.Context(), r, "T", held.Oid))
		}},
		"target moved": {land.ErrTargetMoved, func(t *testing.T, r *repo.Repo, _ claim.Held) {
			commit := gitIn(t, r.Root, "commit-tree", "-p", "main", "-m", "elsewhere", "main^{tree}")
			gitIn(t, r.Root, "update-ref", "refs/heads/main", commit)
		}},
	}
	for name, fence := range fences {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			write(t, filepath.Join(r.Root, "file5.txt"), "dirty\n")
			held := claimFor(t, r, "T")
			before := status(t, r.Root)
			tip := ""
			_, err := land.Land(t.Context(), w, land.Request{
				Landing: c, Message: "m", ClaimOid: held.Oid,
				Journal: journalFunc(func(integrate.Landing) error {
					fence.act(t, r, held)
					tip = targetOf(r, t).Tip
					return nil
				}),
			})
			wantIs(t, err, fence.want)
			equal(t, "target", targetOf(r, t).Tip, tip)
			equal(t, "checkout", status(t, r.Root), before)
		})
	}
}

func TestLandStopsWithoutJournal(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	broken := errors.New("disk full")
	before := status(t, r.Root)
	_, err := land.Land(t.Context(), w, land.Request{
		Landing: c, Message: "m", ClaimOid: claimFor(t, r, "T").Oid,
		Journal: journalFunc(func(integrate.Landing) error { return broken }),
	})
	wantIs(t, err, broken)
	equal(t, "checkout", status(t, r.Root), before)
}

// The user's changes to files that the landing does not touch are preserved, byte for byte, staged or not.
func TestLandKeepsWhatThePersonDid(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	write(t, filepath.Join(r.Root, "file3.txt"), "dirty\r\n")
	write(t, filepath.Join(r.Root, "file4.txt"), "staged\n")
	write(t, filepath.Join(r.Root, "staged-new.txt"), "staged\n")
	gitIn(t, r.Root, "add", "file4.txt", "staged-new.txt")
	gitIn(t, r.Root, "rm", "-q", "--cached", "file6.txt")
	write(t, filepath.Join(r.Root, "file4.txt"), "staged and dirty\n")
	write(t, filepath.Join(r.Root, "untracked.txt"), "untracked\n")
	write(t, filepath.Join(r.Root, "x.log"), "ignored\n")
	must(t, os.Remove(filepath.Join(r.Root, "file5.txt")))
	must(t, os.Chmod(filepath.Join(r.Root, "file7.txt"), 0o755))
	want := gitIn(t, r.Root, "status", "--porcelain", "-uall")
	kept := contents(t, r.Root)
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	equal(t, "status", gitIn(t, r.Root, "status", "--porcelain", "-uall"), want)
	for line := range strings.Lines(kept) {
		touched := strings.HasPrefix(line, "file0.txt") || strings.HasPrefix(line, "file1.txt")
		if !touched && !strings.Contains(contents(t, r.Root), line) {
			t.Errorf("lost: %s", line)
		}
	}
	equal(t, "landed", read(t, filepath.Join(r.Root, "new.txt")), "landed T\n")
}

func TestLandRefusedByCheckout(t *testing.T) {
	oneAtATime(t)
	cases := map[string]struct {
		prepare func(t *testing.T, root string)
		file    string
	}{
		"dirty file": {func(t *testing.T, root string) { write(t, filepath.Join(root, "file0.txt"), "dirty\n") }, "file0.txt"},
		"dirty file that is as landed": {func(t *testing.T, root string) {
			write(t, filepath.Join(root, "file0.txt"), "landed T\n")
		}, "file0.txt"},
		"dirty deleted file": {func(t *testing.T, root string) { write(t, filepath.Join(root, "file1.txt"), "dirty\n") }, "file1.txt"},
		"staged file": {func(t *testing.T, root string) {
			write(t, filepath.Join(root, "file0.txt"), "staged\n")
			gitIn(t, root, "add", "file0.txt")
		}, "file0.txt"},
		"removed file":      {func(t *testing.T, root string) { must(t, os.Remove(filepath.Join(root, "file0.txt"))) }, "file0.txt"},
		"untracked file":    {func(t *testing.T, root string) { write(t, filepath.Join(root, "new.txt"), "mine\n") }, "new.txt"},
		"file for new path": {func(t *testing.T, root string) { write(t, filepath.Join(root, "new.txt/below"), "mine\n") }, "new.txt/below"},
		"ignored file": {func(t *testing.T, root string) {
			write(t, filepath.Join(root, ".git/info/exclude"), "new.txt\n")
			write(t, filepath.Join(root, "new.txt"), "mine\n")
		}, "new.txt"},
		"ignored directory": {func(t *testing.T, root string) {
			write(t, filepath.Join(root, ".git/info/exclude"), "new.txt\n")
			write(t, filepath.Join(root, "new.txt/cache"), "mine\n")
		}, "new.txt/cache"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, candidate := ready(t, r, "T")
			c.prepare(t, r.Root)
			before, tip := status(t, r.Root), targetOf(r, t).Tip
			_, err := landTask(t, w, candidate, land.Squash)
			refused := wantError[*land.CheckoutError](t, err)
			equal(t, "files", strings.Join(refused.Files, " "), c.file)
			equal(t, "path", refused.Path, r.Root)
			equal(t, "checkout", status(t, r.Root), before)
			equal(t, "target", targetOf(r, t).Tip, tip)
			equal(t, "mark left", exists(movePathOf(r)), false)
		})
	}
}

func TestLandWaitsForWhatGoesOn(t *testing.T) {
	cases := map[string]func(t *testing.T, root string){
		"a rebase": func(t *testing.T, root string) {
			gitIn(t, root, "checkout", "-q", "-b", "other", "main~1")
			onOther(t, root, "file7.txt", "other\n")
			gitIn(t, root, "checkout", "-q", "main")
			expectFailure(t, root, "rebase", "other")
		},
		"a merge": func(t *testing.T, root string) {
			gitIn(t, root, "checkout", "-q", "-b", "other", "main~1")
			onOther(t, root, "file7.txt", "other\n")
			gitIn(t, root, "checkout", "-q", "main")
			expectFailure(t, root, "merge", "other")
		},
		"a bisection": func(t *testing.T, root string) {
			gitIn(t, root, "bisect", "start", "main", "main~1")
		},
		"another git": func(t *testing.T, root string) {
			write(t, filepath.Join(root, ".git/index.lock"), "")
		},
	}
	for reason, prepare := range cases {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			onMain(t, r, "file7.txt", "main\n")
			w, c := ready(t, r, "T")
			prepare(t, r.Root)
			tip := targetOf(r, t).Tip
			_, err := landTask(t, w, c, land.Squash)
			refused := wantError[*land.CheckoutError](t, err)
			if !strings.HasPrefix(refused.Reason, reason) || refused.Next == "" {
				t.Fatalf("reason %q, next %q", refused.Reason, refused.Next)
			}
			equal(t, "target", targetOf(r, t).Tip, tip)
		})
	}
}

func onOther(t *testing.T, root, name, content string) {
	t.Helper()
	write(t, filepath.Join(root, name), content)
	gitIn(t, root, "commit", "-qam", "other")
}

func expectFailure(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	if err := cmd.Run(); err == nil {
		t.Fatalf("git %v did not stop", args)
	}
}

// All checkouts of the target move, or none.
func TestLandWithLinkedCheckouts(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "checkout", "-q", "--detach")
	first, second := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	gitIn(t, r.Root, "worktree", "add", "-q", first, "main")
	gitIn(t, r.Root, "worktree", "add", "-q", "-f", second, "main")
	gitIn(t, r.Root, "worktree", "add", "-q", "-f", filepath.Join(t.TempDir(), "gone"), "main")
	w, c := ready(t, r, "T")
	write(t, filepath.Join(second, "file0.txt"), "dirty\n")
	beforeFirst, beforeSecond := status(t, first), status(t, second)
	_, err := landTask(t, w, c, land.Squash)
	equal(t, "path", wantError[*land.CheckoutError](t, err).Path, second)
	equal(t, "first", status(t, first), beforeFirst)
	equal(t, "second", status(t, second), beforeSecond)
	gitIn(t, second, "checkout", "-q", "file0.txt")
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	equal(t, "first", gitIn(t, first, "status", "--porcelain"), "")
	equal(t, "second", read(t, filepath.Join(second, "file0.txt")), "landed T\n")
	equal(t, "main checkout", read(t, filepath.Join(r.Root, "file0.txt")), "one\ntwo\nthree 0\n")
}

func TestLandManyAtOnce(t *testing.T) {
	r := sample(t)
	const tasks = 8
	write(t, filepath.Join(r.Root, "file5.txt"), "dirty\n")
	var all []*repo.Worktree
	for i := range tasks {
		w := add(t, r, fmt.Sprintf("T%d", i))
		write(t, filepath.Join(w.Path, fmt.Sprintf("file%d.txt", i%4)), fmt.Sprintf("one\ntwo\nthree %d\n", i%4)) // same content, new modification time
		write(t, filepath.Join(w.Path, fmt.Sprintf("by-%d.txt", i)), "landed\n")
		commitAll(t, w, "work")
		claimFor(t, r, w.TaskID)
		all = append(all, w)
	}
	var wait sync.WaitGroup
	for i, w := range all {
		wait.Go(func() {
			journal := fileJournal{filepath.Join(t.TempDir(), "intent")}
			strategy := []land.Strategy{land.Squash, land.Merge, land.Rebase}[i%3]
			if i%2 == 0 { // half of them in separate processes
				out, err := actorCommand(r.Root, w.TaskID, journal.path, strategy).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", w.TaskID, err, out)
				}
			} else if err := integrateAndLand(t.Context(), w, strategy, journal); err != nil {
				t.Errorf("%s: %v", w.TaskID, err)
			}
		})
	}
	wait.Wait()
	equal(t, "status", gitIn(t, r.Root, "status", "--porcelain"), " M file5.txt\n?? .coven/")
	for i := range tasks {
		log := gitIn(t, r.Root, "log", "--format=%h", "--first-parent", "--diff-filter=A", "--", fmt.Sprintf("by-%d.txt", i))
		equal(t, fmt.Sprintf("landings of T%d", i), len(strings.Fields(log)), 1)
	}
}
