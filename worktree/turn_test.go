package worktree

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// One turn at a time, and everybody sees whose it is.
func TestLandingTurn(t *testing.T) {
	r := sample(t)
	if _, held := r.TurnHolder("refs/heads/main"); held {
		t.Fatal("it is somebody's turn before anybody came")
	}
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			release, err := r.LandingTurn(t.Context(), "refs/heads/main", "land x")
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			if holder, held := r.TurnHolder("refs/heads/main"); !held || holder.What != "land x" {
				t.Errorf("the holder is %+v, %v", holder, held)
			}
			if _, held := r.TurnHolder("refs/heads/other"); held {
				t.Error("another target has its own turns")
			}
			inside.Add(-1)
			release()
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d had the turn at once", most.Load())
	}
	release, err := r.LandingTurn(t.Context(), "refs/heads/main", "land y")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := r.LandingTurn(ctx, "refs/heads/main", "land z"); !errors.Is(err, gone) {
		t.Errorf("waiting ends with the context: %v", err)
	}
}
