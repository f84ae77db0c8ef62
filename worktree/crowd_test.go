package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
)

// wholeRun does everything that a run does with its task's worktree.
func wholeRun(ctx context.Context, r *repo.Repo, task string, journal land.Journal) error {
	held, err := claim.Acquire(ctx, r, claim.Claim{Task: task, Holder: "h", Session: task}, "")
	if err != nil {
		return err
	}
	w, err := Add(ctx, r, AddRequest{TaskID: task, Base: "main"})
	if err != nil {
		return err
	}
	if _, err := snapshot.Take(ctx, w, task, "start"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Path, "by-"+task+".txt"), []byte(task), 0o644); err != nil {
		return err
	}
	if _, err := commit.Create(ctx, w, commit.Request{Message: "work of " + task, TargetTip: "main"}); err != nil {
		return err
	}
	if err := integrateAndLand(ctx, w, "", journal); err != nil {
		return err
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	if _, err := Remove(ctx, w, RemoveRequest{Landed: tip}); err != nil {
		return err
	}
	return claim.Release(ctx, r, task, held.Oid)
}

// Goroutines and processes work in one repository at the same time, while the user's git packs refs and
// shows the status: each task lands exactly once, and no operation fails because of a git lock.
func TestCrowd(t *testing.T) {
	tasks, workers, processes, each := 12, 8, 3, 2
	if isLong() {
		tasks, each = 24, 3
	}
	r := sample(t)
	write(t, filepath.Join(r.Root, "file5.txt"), "dirty\n")
	queue := make(chan string, tasks)
	for i := range tasks - processes*each {
		queue <- fmt.Sprintf("g%d", i)
	}
	close(queue)
	ctx, over := context.WithCancel(t.Context())
	var people, runs sync.WaitGroup
	for _, args := range [][]string{{"pack-refs", "--all"}, {"status"}} {
		people.Go(func() {
			for ctx.Err() == nil {
				cmd := exec.Command("git", args...)
				cmd.Dir = r.Root
				_ = cmd.Run() // it may fail because refs or the index are locked
			}
		})
	}
	for range workers {
		runs.Go(func() {
			for task := range queue {
				if err := wholeRun(t.Context(), r, task, fileJournal{filepath.Join(t.TempDir(), "intent")}); err != nil {
					t.Errorf("%s: %v", task, err)
				}
			}
		})
	}
	for p := range processes {
		runs.Go(func() {
			var names []string
			for i := range each {
				names = append(names, fmt.Sprintf("p%d-%d", p, i))
			}
			intent := "crowd." + filepath.Join(t.TempDir(), "intent")
			out, err := actorCommand(r.Root, strings.Join(names, " "), intent, "").CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v: %s", p, err, out)
			}
		})
	}
	runs.Wait()
	over()
	people.Wait()
	log := strings.Fields(gitIn(t, r.Root, "log", "--format=", "--name-only", "--diff-filter=A", "--first-parent", "main", "--", "by-*"))
	landings := map[string]int{}
	for _, name := range log {
		landings[name]++
	}
	equal(t, "tasks landed", len(landings), tasks)
	equal(t, "landings", gitIn(t, r.Root, "rev-list", "--count", "main"), fmt.Sprint(tasks+1))
	equal(t, "status", gitIn(t, r.Root, "status", "--porcelain"), " M file5.txt\n?? .coven/")
	equal(t, "claims left", len(value[[]claim.Held](t)(claim.List(t.Context(), r))), 0)
	equal(t, "worktrees left", len(value[[]Info](t)(List(t.Context(), r))), 0)
	noLocks(t, r.GitDir)
}

// crowd is the main function of the processes.
func crowd(ctx context.Context, r *repo.Repo, tasks, journal string) error {
	var failed error
	for task := range strings.FieldsSeq(tasks) {
		if err := wholeRun(ctx, r, task, fileJournal{journal}); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", task, err))
		}
	}
	return failed
}
