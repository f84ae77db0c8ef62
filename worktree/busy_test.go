package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/land"
)

// Other git processes repeatedly lock the checkout's index for a moment. A landing finds a gap between
// them, and so does the way back.
func TestLandWhileTheIndexIsTaken(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	personWorks(t, r.Root)
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// A change of timestamps makes git write the index.
				_ = exec.Command("touch", filepath.Join(r.Root, "file2.txt")).Run()
				cmd := exec.Command("git", "status")
				cmd.Dir, cmd.Env = r.Root, os.Environ()
				_ = cmd.Run()
			}
		})
	}
	tip := targetOf(r, t).Tip
	for range 6 {
		landed := value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
		c := land.CheckoutOf(r, r.GitDir, r.Root)
		c.Ref = "refs/heads/main"
		must(t, c.Follow(t.Context(), landed.New, tip))
		must(t, c.Finish(t.Context()))
		gitIn(t, r.Root, "update-ref", "refs/heads/main", tip)
	}
	close(stop)
	others.Wait()
	equal(t, "file", read(t, filepath.Join(r.Root, "file0.txt")), "one\ntwo\nthree 0\n")
	noLocks(t, r.GitDir)
}

// A git process that was killed in a transaction leaves a lock for each ref. One error names all of them.
func TestLocksOfADeadTransaction(t *testing.T) {
	oneAtATime(t)
	r := sample(t)
	tip := targetOf(r, t).Tip
	refs := []string{"refs/coven/keep/T/landing", "refs/coven/keep/T/integrate"}
	var locks []string
	var edits []ref.Edit
	for _, name := range refs {
		lock := filepath.Join(r.GitDir, name+".lock")
		must(t, os.MkdirAll(filepath.Dir(lock), 0o755))
		must(t, os.WriteFile(lock, nil, 0o644))
		old := time.Now().Add(-time.Minute)
		must(t, os.Chtimes(lock, old, old))
		locks, edits = append(locks, lock), append(edits, ref.Set(name, tip))
	}
	err := r.Transact(t.Context(), r.Git(), "keep", edits...)
	busy := (*lock.BusyError)(nil)
	if !errors.As(err, &busy) {
		t.Fatalf("%v", err)
	}
	equal(t, "files", strings.Join(busy.Files(), " "), strings.Join(locks, " "))
	for _, lock := range locks {
		if !strings.Contains(busy.Error(), "'"+lock+"'") || !strings.Contains(busy.NextCommand(), lock) {
			t.Errorf("%v does not name %s; next: %s", busy, lock, busy.NextCommand())
		}
		must(t, os.Remove(lock))
	}
	must(t, r.Transact(t.Context(), r.Git(), "keep", edits...))
}
