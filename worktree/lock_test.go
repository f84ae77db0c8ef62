package worktree

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A waiter that gives up does not keep the lock from others, whether the holder is in its own process or in
// another.
func TestLockGivenUp(t *testing.T) {
	r := sample(t)
	other := value[*repo.Repo](t)(repo.Open(t.Context(), r.Root)) // as in another process
	tired := errors.New("tired")
	for name, holder := range map[string]*repo.Repo{"own": r, "other": other} {
		l := value[*lock.Lock](t)(holder.Lock(t.Context(), name, "hold"))
		var waiting sync.WaitGroup
		for range 4 {
			waiting.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, tired)
				defer cancel()
				if _, err := r.Lock(ctx, name, "wait"); !errors.Is(err, tired) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		waiting.Wait()
		l.Release()
		value[*lock.Lock](t)(r.Lock(t.Context(), name, "next")).Release()
		value[*lock.Lock](t)(other.Lock(t.Context(), name, "last")).Release()
	}
}

// Only one goroutine of all processes has a lock at a time.
func TestLockExcludes(t *testing.T) {
	r := sample(t)
	repos := []*repo.Repo{r, value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))}
	var inside, times atomic.Int32
	var working sync.WaitGroup
	for i := range 16 {
		working.Go(func() {
			for range 20 {
				l, err := repos[i%2].Lock(t.Context(), "one", "work")
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				times.Add(1)
				inside.Add(-1)
				l.Release()
			}
		})
	}
	working.Wait()
	equal(t, "times", times.Load(), 320)
}
