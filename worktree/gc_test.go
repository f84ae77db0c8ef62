package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// collect collects the snapshots of sessions and returns the names of the deleted refs.
func collect(t *testing.T, r *repo.Repo, refs []snapshot.Ref) []string {
	t.Helper()
	var names []string
	for _, ref := range value[[]snapshot.Ref](t)(snapshot.GC(t.Context(), r, refs)) {
		names = append(names, ref.Name)
	}
	return names
}

// Snapshots that were taken after the decision to expire a session's snapshots stay, even if the
// transaction for many refs fails because of them.
func TestCollectLeavesWhatMoved(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	for _, session := range []string{"a", "b", "c"} {
		write(t, filepath.Join(w.Path, "file0.txt"), session)
		value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, session, ""))
	}
	refs := value[[]snapshot.Ref](t)(snapshot.Refs(ctx, r))
	equal(t, "refs", len(refs), 3)
	write(t, filepath.Join(w.Path, "file0.txt"), "later")
	later := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "b", ""))
	equal(t, "gone", fmt.Sprint(collect(t, r, refs)), "[a c]")
	left := value[[]snapshot.Ref](t)(snapshot.Refs(ctx, r))
	equal(t, "left", len(left), 1)
	equal(t, "later", left[0].Oid, later.Commit)
	gitIn(t, r.Root, "fsck", "--strict", "--no-dangling")
}

// All objects are packed, also those that nothing refers to. A large pack does not change.
func TestCollectDeletesNoObjects(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "commit", "--allow-empty", "-m", "to be forgotten")
	forgotten := gitIn(t, r.Root, "rev-parse", "HEAD")
	gitIn(t, r.Root, "repack", "-q", "-a", "-d")
	gitIn(t, r.Root, "reset", "-q", "--hard", "HEAD^")
	gitIn(t, r.Root, "reflog", "expire", "--expire=now", "--all")
	blob := filepath.Join(t.TempDir(), "blob")
	write(t, blob, "nobody refers to this")
	loose := gitIn(t, r.Root, "hash-object", "-w", blob)
	gitIn(t, r.Root, "commit", "--allow-empty", "-m", "to be packed")
	packs := func() []string {
		return value[[]string](t)(filepath.Glob(filepath.Join(r.GitDir, "objects/pack/*.pack")))
	}
	before := packs()
	equal(t, "gone", len(collect(t, r, nil)), 0)
	for _, pack := range before {
		if !slices.Contains(packs(), pack) {
			t.Errorf("%s is gone", pack)
		}
	}
	equal(t, "new packs", len(packs()), len(before)+1)
	equal(t, "loose", snapshot.LooseObjects(r), 0)
	gitIn(t, r.Root, "cat-file", "-e", forgotten)
	gitIn(t, r.Root, "cat-file", "-e", loose)
}

// Two collections do not run at the same time.
func TestCollectAlone(t *testing.T) {
	r := sample(t)
	l := value[*lock.Lock](t)(r.Lock(t.Context(), snapshot.CollectLock, "gc"))
	_, err := snapshot.GC(t.Context(), r, nil)
	wantIs(t, err, snapshot.ErrCollecting)
	l.Release()
	_, err = snapshot.GC(t.Context(), r, nil)
	must(t, err)
}

// Tasks that start and work during a collection lose nothing.
func TestCollectWhileTasksWork(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	tasks := []string{"A", "B"}
	var work, collecting sync.WaitGroup
	done := make(chan struct{})
	collecting.Go(func() {
		for {
			if _, err := snapshot.GC(ctx, r, nil); err != nil {
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for _, task := range tasks {
		work.Go(func() {
			w, err := Add(ctx, r, AddRequest{TaskID: task, Base: "HEAD"})
			for n := 1; n <= 10 && err == nil; n++ {
				if err = os.WriteFile(filepath.Join(w.Path, "new"), []byte(strings.Repeat(task, n)), 0o644); err == nil {
					_, err = snapshot.Take(ctx, w, "session-"+task, "")
				}
			}
			if err != nil {
				t.Errorf("%s: %v", task, err)
			}
		})
	}
	work.Wait()
	close(done)
	collecting.Wait()
	for _, task := range tasks {
		all := value[[]snapshot.Snapshot](t)(snapshot.List(ctx, r, "session-"+task))
		equal(t, "snapshots", len(all), 10)
		for i, s := range all {
			equal(t, "content", gitIn(t, r.Root, "show", s.Tree+":new"), strings.Repeat(task, i+1))
		}
	}
	gitIn(t, r.Root, "fsck", "--strict", "--no-dangling")
}
