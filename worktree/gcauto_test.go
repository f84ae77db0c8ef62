package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/snapshot"
)

// coven collects garbage once a day, for the first time a day after its first use of a repository,
// regardless of changes of the clock.
func TestCollectionIsDueDaily(t *testing.T) {
	r := sample(t)
	begin := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		due   bool
	}{{0, false}, {23 * time.Hour, false}, {24 * time.Hour, true}, {25 * time.Hour, false}, {47 * time.Hour, false}, {48 * time.Hour, true}, {0, true}, {time.Hour, false}} {
		now := begin.Add(step.after)
		equal(t, "due after "+step.after.String(), snapshot.CollectionDue(r, now), step.due)
		equal(t, "begun after "+step.after.String(), value[bool](t)(snapshot.BeginCollection(t.Context(), r, now)), step.due)
		equal(t, "due again", snapshot.CollectionDue(r, now), false)
	}
}

// If several processes find that a collection is due, only one begins it. During a collection, none does.
func TestCollectionBeginsOnce(t *testing.T) {
	r := sample(t)
	begin := time.Unix(1_800_000_000, 0)
	snapshot.CollectionDue(r, begin)
	now := begin.Add(snapshot.CollectEvery)
	l := value[*lock.Lock](t)(r.Lock(t.Context(), snapshot.CollectLock, "gc"))
	_, err := snapshot.BeginCollection(t.Context(), r, now)
	wantIs(t, err, snapshot.ErrCollecting)
	l.Release()
	begun := make(chan bool)
	for range 8 {
		go func() {
			mine, err := snapshot.BeginCollection(t.Context(), r, now)
			begun <- mine && err == nil
		}()
	}
	n := 0
	for range 8 {
		if <-begun {
			n++
		}
	}
	equal(t, "begun", n, 1)
}

// Many packs become one, and so do many loose objects, with those that nothing refers to. This happens at most once a minute, and not in a repository
// that takes objects from another one, whose packs git would not join.
func TestPack(t *testing.T) {
	r := sample(t)
	now := time.Date(2031, 4, 2, 0, 0, 0, 0, time.UTC)
	packs := func() int {
		return len(value[[]string](t)(filepath.Glob(filepath.Join(r.GitDir, "objects/pack/*.pack"))))
	}
	more := func(n int) {
		for i := range n {
			write(t, filepath.Join(r.Root, "more"), fmt.Sprint(i, packs()))
			gitIn(t, r.Root, "hash-object", "-w", "more")
			gitIn(t, r.Root, "commit", "-qam", "more", "--allow-empty")
			gitIn(t, r.Root, "repack", "-q", "-d")
		}
	}
	equal(t, "due at first", snapshot.PackDue(r, now), false)
	must(t, snapshot.Pack(t.Context(), r, now))
	more(21)
	equal(t, "packs", packs(), 21)
	equal(t, "due", snapshot.PackDue(r, now), true)
	alternates := filepath.Join(r.GitDir, "objects/info/alternates")
	write(t, alternates, filepath.Join(sample(t).GitDir, "objects")+"\n")
	equal(t, "due with alternates", snapshot.PackDue(r, now), false)
	must(t, os.Remove(alternates))
	must(t, snapshot.Pack(t.Context(), r, now))
	equal(t, "packs, packed", packs() < 10, true)
	equal(t, "loose, packed", snapshot.LooseObjects(r), 0)
	equal(t, "loose ref", exists(filepath.Join(r.GitDir, gitIn(t, r.Root, "symbolic-ref", "HEAD"))), false)
	equal(t, "graph", exists(filepath.Join(r.GitDir, "objects/info/commit-graph")), true)
	gitIn(t, r.Root, "commit-graph", "verify")
	for i := range 27 {
		write(t, filepath.Join(r.GitDir, "objects/17", fmt.Sprintf("%038x", i)), "")
	}
	equal(t, "due at once", snapshot.PackDue(r, now), false)
	equal(t, "due after a minute", snapshot.PackDue(r, now.Add(time.Minute)), true)
	must(t, os.RemoveAll(filepath.Join(r.GitDir, "objects/17")))
	l := value[*lock.Lock](t)(r.Lock(t.Context(), snapshot.CollectLock, "gc"))
	wantIs(t, snapshot.Pack(t.Context(), r, now.Add(time.Minute)), snapshot.ErrCollecting)
	l.Release()
	gitIn(t, r.Root, "fsck", "--strict", "--no-dangling")
}
