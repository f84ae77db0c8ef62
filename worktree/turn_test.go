package worktree

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// There is one turn at a time, and every process sees its holder.
func TestLandingTurn(t *testing.T) {
	r := sample(t)
	if line := value[land.Line](t)(land.ReadLine(r, "refs/heads/main")); line.Turn.PID != 0 || len(line.Waiting) > 0 {
		t.Fatalf("somebody is in line before anybody came: %+v", line)
	}
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			turn, err := land.TakeTurn(t.Context(), r, "refs/heads/main", "land x")
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			if line, err := land.ReadLine(r, "refs/heads/main"); err != nil || line.Turn.What != "land x" {
				t.Errorf("the line is %+v, %v", line, err)
			}
			if line, err := land.ReadLine(r, "refs/heads/other"); err != nil || line.Turn.PID != 0 || len(line.Waiting) > 0 {
				t.Errorf("another target has its own line: %+v, %v", line, err)
			}
			inside.Add(-1)
			turn.Release()
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d had the turn at once", most.Load())
	}
	turn := value[*land.Turn](t)(land.TakeTurn(t.Context(), r, "refs/heads/main", "land y"))
	defer turn.Release()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := land.TakeTurn(ctx, r, "refs/heads/main", "land z"); !errors.Is(err, gone) {
		t.Errorf("waiting ends with the context: %v", err)
	}
}

// The turn goes to the first waiter. Every process sees the waiters, in order, and the current work of the
// holder. Waiters that give up, and the tickets of killed processes, block no one.
func TestLandingLine(t *testing.T) {
	r := sample(t)
	const main = "refs/heads/main"
	turn := value[*land.Turn](t)(land.TakeTurn(t.Context(), r, main, "land a"))
	turn.Doing("runs its checks, which take long")
	turn.Doing("lands")
	order := make(chan string, 4)
	gone := make(chan struct{})
	var all sync.WaitGroup
	join := func(ctx context.Context, what string) {
		before := len(waiting(t, r))
		all.Go(func() {
			next, err := land.TakeTurn(ctx, r, main, what)
			if err != nil {
				close(gone)
				return
			}
			order <- what
			next.Release()
		})
		for len(waiting(t, r)) == before {
			runtime.Gosched()
		}
	}
	join(t.Context(), "land b")
	ctx, cancel := context.WithCancel(t.Context())
	join(ctx, "land c")
	dead := land.TicketFile(r, main, 3)
	must(t, os.WriteFile(dead, []byte(`{"pid":1,"what":"land dead"}`), 0o600))
	join(t.Context(), "land d")
	join(t.Context(), "land e")
	line := value[land.Line](t)(land.ReadLine(r, main))
	equal(t, "who has the turn", line.Turn.What+", "+line.Turn.Doing, "land a, lands")
	equal(t, "who waits", strings.Join(waiting(t, r), ", "), "land b, land c, land d, land e")
	cancel()
	<-gone
	equal(t, "after one gave up", strings.Join(waiting(t, r), ", "), "land b, land d, land e")
	turn.Release()
	all.Wait()
	close(order)
	var came []string
	for what := range order {
		came = append(came, what)
	}
	equal(t, "order", strings.Join(came, ", "), "land b, land d, land e")
	left, err := os.ReadDir(land.LineDir(r, main))
	equal(t, "tickets that stay", len(left), 0)
	must(t, err)
}

func waiting(t *testing.T, r *repo.Repo) []string {
	t.Helper()
	line := value[land.Line](t)(land.ReadLine(r, "refs/heads/main"))
	var what []string
	for _, h := range line.Waiting {
		what = append(what, h.What)
	}
	return what
}
