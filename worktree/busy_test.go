package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Other gits take the checkout's index again and again, for a moment each: a
// landing finds its gap, there and back.
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
				// A change of time stamps makes git write the index.
				_ = exec.Command("touch", filepath.Join(r.Root, "file2.txt")).Run()
				cmd := exec.Command("git", "status")
				cmd.Dir, cmd.Env = r.Root, os.Environ()
				_ = cmd.Run()
			}
		})
	}
	tip := r.target(t).Tip
	for range 6 {
		landed := value[Landing](t)(land(t, w, c, Squash))
		c := r.checkout(r.GitDir, r.Root)
		c.ref = "refs/heads/main"
		must(t, c.follow(t.Context(), landed.New, tip))
		must(t, c.settle(t.Context()))
		gitIn(t, r.Root, "update-ref", "refs/heads/main", tip)
	}
	close(stop)
	others.Wait()
	equal(t, "file", read(t, filepath.Join(r.Root, "file0.txt")), "one\ntwo\nthree 0\n")
	noLocks(t, r.GitDir)
}
