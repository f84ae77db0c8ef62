package worktree

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestLandingLock(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	claim := claimFor(t, r, "T")
	_, held := landingLock(r, "refs/heads/main")
	equal(t, "held before", held, false)
	start := time.Now().Add(-time.Second)
	value[integrate.Landing](t)(land.Land(t.Context(), w, land.Request{
		Landing: c, Message: "m", ClaimOid: claim.Oid,
		Journal: journalFunc(func(integrate.Landing) error {
			holder, held := landingLock(r, "refs/heads/main")
			equal(t, "held", held, true)
			equal(t, "pid", holder.PID, os.Getpid())
			equal(t, "what", holder.What, "land T")
			equal(t, "host", holder.Host, value[string](t)(os.Hostname()))
			equal(t, "since", holder.Since.After(start) && !holder.Since.After(time.Now()), true)
			_, other := landingLock(r, "refs/heads/other")
			equal(t, "another target", other, false)
			return nil
		}),
	}))
	_, held = landingLock(r, "refs/heads/main")
	equal(t, "held after", held, false)
	equal(t, "file", read(t, r.StatePath("locks", names.TargetLock(c.Target.Branch))), "")
}

// The remains of a killed holder in the file do not make the lock held, and the next holder replaces them.
func TestLandingLockOfTheDead(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	claim := claimFor(t, r, "T")
	cmd := actorCommand(r.Root, "T", filepath.Join(t.TempDir(), "intent"), land.Squash)
	killAt(t, cmd, "land.intent")
	left := read(t, r.StatePath("locks", names.TargetLock(c.Target.Branch)))
	if !strings.Contains(left, `"land T"`) {
		t.Fatalf("the killed process left %q", left)
	}
	holder, held := landingLock(r, "refs/heads/main")
	if held {
		t.Fatalf("held by %v", holder)
	}
	l := value[*lock.Lock](t)(r.Lock(t.Context(), names.TargetLock(c.Target.Branch), "x"))
	holder, held = landingLock(r, "refs/heads/main")
	equal(t, "held", held, true)
	equal(t, "what", holder.What, "x")
	equal(t, "pid", holder.PID, os.Getpid())
	l.Release()
	value[integrate.Landing](t)(land.Land(t.Context(), w, land.Request{
		Landing: c, Message: "m", ClaimOid: claim.Oid, Journal: fileJournal{filepath.Join(t.TempDir(), "intent")},
	}))
}

// The lock of a killed coven lasts as long as its git process, and so does the record of its holder.
func TestLandingLockOfAnOrphan(t *testing.T) {
	r := sample(t)
	target := targetOf(r, t)
	l := value[*lock.Lock](t)(r.Lock(t.Context(), names.TargetLock(target.Branch), "land T"))
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{l.File()}
	in, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	must(t, l.File().Close()) // as a kill does, without releasing the lock
	holder, held := landingLock(r, target.Ref)
	equal(t, "held", held, true)
	equal(t, "what", holder.What, "land T")
	must(t, in.Close())
	must(t, child.Wait())
	_, held = landingLock(r, target.Ref)
	equal(t, "held after", held, false)
	l.Release() // already closed; this satisfies lockedfile's own check
}

// Querying the holder does not block others.
func TestLandingLockAskedOften(t *testing.T) {
	r := sample(t)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					landingLock(r, "refs/heads/main")
				}
			}
		})
	}
	for range 50 {
		l := value[*lock.Lock](t)(r.Lock(t.Context(), names.TargetLock(targetOf(r, t).Branch), "land T"))
		if _, held := landingLock(r, "refs/heads/main"); !held {
			t.Error("a held lock was called free")
		}
		l.Release()
	}
	close(stop)
	wait.Wait()
}

// While another process holds a lock of git, nothing changes. Afterwards, the same landing succeeds.
func TestLandMeetsForeignLocks(t *testing.T) {
	oneAtATime(t)
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w, c := ready(t, r, "T")
			claimFor(t, r, "T")
			personWorks(t, r.Root)
			before, tip := status(t, r.Root), targetOf(r, t).Tip
			file := filepath.Join(r.GitDir, name)
			letGo := holdFile(t, file)
			_, err := landTask(t, w, c, land.Squash)
			text := err.Error()
			if name == "refs/heads/main.lock" {
				equal(t, "file", wantError[*lock.BusyError](t, err).File, file)
			} else {
				equal(t, "path", wantError[*land.CheckoutError](t, err).Path, r.Root)
			}
			for _, part := range []string{"another git process has held " + file + " for ", "s; next: ", "rm '" + file + "'"} {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in %q", part, text)
				}
			}
			if strings.Contains(text, "Unable to create") {
				t.Errorf("git's own words: %q", text)
			}
			equal(t, "target", targetOf(r, t).Tip, tip)
			equal(t, "lock", exists(file), true)
			equal(t, "mark left", exists(movePathOf(r)), false)
			letGo()
			equal(t, "checkout", status(t, r.Root), before)
			value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
		})
	}
}

// holdFile makes another process create a lock file. The returned function makes that process remove it and
// exit.
func holdFile(t *testing.T, file string) func() {
	t.Helper()
	cmd := exec.Command("sh", "-c", `set -C; : >"$1"; echo made; read -r _; rm "$1"`, "sh", file)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	equal(t, "the holder", value[string](t)(bufio.NewReader(out).ReadString('\n')), "made\n")
	return func() {
		t.Helper()
		must(t, in.Close())
		must(t, cmd.Wait())
	}
}

// Other operations also name the lock that blocks them.
func TestWritesMeetForeignLocks(t *testing.T) {
	oneAtATime(t)
	cases := map[string]struct {
		lock string
		act  func(r *repo.Repo, w *repo.Worktree, held claim.Held) error
	}{
		"commit": {"refs/heads/coven/T.lock", func(r *repo.Repo, w *repo.Worktree, _ claim.Held) error {
			_, err := commit.Create(context.Background(), w, commit.Request{Message: "m", TargetTip: "main"})
			return err
		}},
		"snapshot": {"refs/coven/snapshots/s.lock", func(_ *repo.Repo, w *repo.Worktree, _ claim.Held) error {
			_, err := snapshot.Take(context.Background(), w, "s", "")
			return err
		}},
		"unclaim": {"packed-refs.lock", func(r *repo.Repo, _ *repo.Worktree, held claim.Held) error {
			return claim.Release(context.Background(), r, "T", held.Oid)
		}},
		"renew": {"refs/coven/claims/T.lock", func(r *repo.Repo, _ *repo.Worktree, held claim.Held) error {
			_, err := claim.Renew(context.Background(), r, held, held.Expires)
			return err
		}},
		"add": {"refs/heads/coven/new.lock", func(r *repo.Repo, _ *repo.Worktree, _ claim.Held) error {
			_, err := Add(context.Background(), r, AddRequest{TaskID: "new", Base: "main"})
			return err
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w := add(t, r, "T")
			held := claimFor(t, r, "T")
			write(t, filepath.Join(w.Path, "a"), "a")
			gitIn(t, r.Root, "pack-refs", "--all")
			file := filepath.Join(r.GitDir, c.lock)
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			letGo := holdFile(t, file)
			equal(t, "file", wantError[*lock.BusyError](t, c.act(r, w, held)).File, file)
			letGo()
			must(t, c.act(r, w, held))
		})
	}
}

// git pack-refs holds packed-refs.lock; a landing does not need it.
func TestLandBesidePackRefs(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	gitIn(t, r.Root, "pack-refs", "--all")
	letGo := holdFile(t, filepath.Join(r.GitDir, "packed-refs.lock"))
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	letGo()
	equal(t, "status", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
}

// landingLock returns the holder of a target's lock.
func landingLock(r *repo.Repo, targetRef string) (lock.Holder, bool) {
	return r.Locks.Holder(names.TargetLock(strings.TrimPrefix(targetRef, names.HeadsPrefix)))
}
