package worktree

import (
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
