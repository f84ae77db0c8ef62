package spawn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/agent/spawn"
)

func none(spawn.State) error { return nil }

// item returns an item with the given work.
func item(account, label string, work func(context.Context) error) spawn.Item {
	return spawn.Item{Account: account, Label: label, Queued: none, Started: none, Work: work}
}

// Items start in order, one at a time, and their results are returned in order. A failure or a panic
// does not stop the queue.
func TestQueueIsFIFO(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &spawn.Queue{}
		var mu sync.Mutex
		var started, returned []int
		var depths []int
		var running atomic.Int32
		var all sync.WaitGroup
		failed := errors.New("failed")
		errs := make([]error, 5)
		for i := range 5 {
			one := item("a", fmt.Sprint(i), func(context.Context) error {
				if running.Add(1) > 1 {
					t.Error("two at once")
				}
				defer running.Add(-1)
				mu.Lock()
				started = append(started, i)
				mu.Unlock()
				<-time.After(time.Duration(5-i) * time.Second)
				switch i {
				case 1:
					return failed
				case 2:
					panic("a bug")
				}
				return nil
			})
			one.Queued = func(s spawn.State) error { depths = append(depths, s.Depth); return nil }
			all.Go(func() {
				errs[i] = q.Do(t.Context(), one)
				mu.Lock()
				returned = append(returned, i)
				mu.Unlock()
			})
			synctest.Wait() // it is queued
		}
		all.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(started, want) || !slices.Equal(returned, want) || !slices.Equal(depths, want) {
			t.Errorf("started %v, returned %v, depths %v", started, returned, depths)
		}
		panicked := (*spawn.PanicError)(nil)
		if errs[0] != nil || !errors.Is(errs[1], failed) || !errors.As(errs[2], &panicked) || errs[3] != nil || errs[4] != nil {
			t.Errorf("errors: %v", errs)
		}
		if panicked == nil || panicked.Error() != "panic: a bug" || !strings.Contains(panicked.Stack, "queue_test.go") {
			t.Errorf("panic: %+v", panicked)
		}
	})
}

// C-30 C-141: Items run concurrently within the limits of each account, with results still in order, and an
// account at its limit does not block others.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limits := map[string]int{"a": rapid.IntRange(1, 3).Draw(rt, "a"), "b": rapid.IntRange(1, 3).Draw(rt, "b")}
		q := &spawn.Queue{MaxConcurrent: rapid.IntRange(1, 4).Draw(rt, "all"), Accounts: limits}
		accounts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 12).Draw(rt, "accounts")
		lasts := rapid.SliceOfN(rapid.IntRange(1, 9), len(accounts), len(accounts)).Draw(rt, "lasts")
		synctest.Test(t, func(*testing.T) {
			var mu sync.Mutex
			running, most, returned := map[string]int{}, map[string]int{}, []int(nil)
			var all sync.WaitGroup
			for i, account := range accounts {
				work := func(context.Context) error {
					mu.Lock()
					for _, key := range []string{account, ""} {
						running[key]++
						most[key] = max(most[key], running[key])
					}
					mu.Unlock()
					<-time.After(time.Duration(lasts[i]) * time.Second)
					mu.Lock()
					defer mu.Unlock()
					running[account]--
					running[""]--
					return nil
				}
				all.Go(func() {
					if err := q.Do(context.Background(), item(account, fmt.Sprint(i), work)); err != nil {
						rt.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					returned = append(returned, i)
				})
				synctest.Wait()
			}
			all.Wait()
			if !slices.IsSorted(returned) || len(returned) != len(accounts) {
				rt.Errorf("returned in the order %v", returned)
			}
			for account, n := range most {
				if limit, ok := limits[account]; ok && n > limit {
					rt.Errorf("%d of account %s at once, the limit is %d", n, account, limit)
				}
			}
			if most[""] > q.MaxConcurrent {
				rt.Errorf("%d at once, the limit is %d", most[""], q.MaxConcurrent)
			}
		})
	})
}

// If the limits allow it, all items run concurrently.
func TestQueueRunsAtOnce(t *testing.T) {
	t.Parallel()
	q := &spawn.Queue{MaxConcurrent: 3, Accounts: map[string]int{"a": 2}}
	var met, all sync.WaitGroup
	met.Add(3)
	for _, account := range []string{"a", "a", "b"} {
		all.Go(func() {
			_ = q.Do(t.Context(), item(account, account, func(context.Context) error { met.Done(); met.Wait(); return nil }))
		})
	}
	all.Wait() // hangs if they do not run concurrently
}

// C-116: Ten thousand tasks, many of them cancelled while waiting, leave nothing behind.
func TestQueueManyAndCancelled(t *testing.T) {
	t.Parallel()
	q := &spawn.Queue{MaxConcurrent: 4}
	var all sync.WaitGroup
	var worked, cancelled atomic.Int32
	gone := errors.New("gone")
	for i := range 10_000 {
		ctx, cancel := context.WithCancelCause(t.Context())
		if i%3 == 0 {
			cancel(gone)
		}
		all.Go(func() {
			defer cancel(nil)
			switch err := q.Do(ctx, item("a", "x", func(context.Context) error { worked.Add(1); return nil })); {
			case errors.Is(err, gone):
				cancelled.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if worked.Load()+cancelled.Load() < 10_000 || worked.Load() < 6_666 {
		t.Errorf("%d worked, %d were cancelled", worked.Load(), cancelled.Load())
	}
	var state spawn.State
	last := item("a", "last", func(context.Context) error { return nil })
	last.Started = func(s spawn.State) error { state = s; return nil }
	if err := q.Do(t.Context(), last); err != nil || state != (spawn.State{Current: "last"}) {
		t.Errorf("afterwards: %+v, %v", state, err)
	}
}

// C-149: An agent that waits for its own subagent does not prevent it from starting.
func TestQueueNested(t *testing.T) {
	t.Parallel()
	q := &spawn.Queue{}
	depth := 0
	var deeper func(ctx context.Context) error
	deeper = func(ctx context.Context) error {
		if depth++; depth == 4 {
			return nil
		}
		return q.Do(ctx, item("a", fmt.Sprint(depth), deeper))
	}
	if err := q.Do(t.Context(), item("a", "0", deeper)); err != nil || depth != 4 {
		t.Errorf("depth %d, %v", depth, err)
	}
}

// An agent counts as running again after its subagent has ended: the next one waits for it.
func TestQueueNestedReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &spawn.Queue{}
		asked, goOn, began := make(chan struct{}), make(chan struct{}), false
		var all sync.WaitGroup
		all.Go(func() {
			_ = q.Do(t.Context(), item("a", "outer", func(ctx context.Context) error {
				_ = q.Do(ctx, item("a", "inner", func(context.Context) error { <-asked; return nil }))
				<-goOn
				return nil
			}))
		})
		synctest.Wait()
		all.Go(func() {
			_ = q.Do(t.Context(), item("a", "next", func(context.Context) error { began = true; return nil }))
		})
		synctest.Wait()
		close(asked)
		synctest.Wait()
		if began {
			t.Error("the next one started while the outer one worked")
		}
		close(goOn)
		all.Wait()
		if !began {
			t.Error("the next one never started")
		}
	})
}

// C-116: An item that is cancelled while waiting never runs, and its caller gets the result in its turn.
func TestQueueCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &spawn.Queue{}
		goOn, gone := make(chan struct{}), errors.New("gone")
		var all sync.WaitGroup
		all.Go(func() {
			_ = q.Do(t.Context(), item("a", "first", func(context.Context) error { <-goOn; return nil }))
		})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		returned := false
		all.Go(func() {
			err := q.Do(ctx, item("a", "second", func(context.Context) error { t.Error("it ran"); return nil }))
			if returned = true; !errors.Is(err, gone) {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		if returned {
			t.Error("it returned before the first one")
		}
		close(goOn)
		all.Wait()
	})
}

// An item that cannot be recorded does not start, but later ones do.
func TestQueueUnrecorded(t *testing.T) {
	t.Parallel()
	q := &spawn.Queue{}
	full := errors.New("the disk is full")
	for _, broken := range []func(*spawn.Item){
		func(i *spawn.Item) { i.Queued = func(spawn.State) error { return full } },
		func(i *spawn.Item) { i.Started = func(spawn.State) error { return full } },
	} {
		one := item("a", "x", func(context.Context) error { t.Error("it ran"); return nil })
		broken(&one)
		if err := q.Do(t.Context(), one); !errors.Is(err, full) {
			t.Error(err)
		}
	}
	ran := false
	if err := q.Do(t.Context(), item("a", "y", func(context.Context) error { ran = true; return nil })); err != nil || !ran {
		t.Error(ran, err)
	}
}
