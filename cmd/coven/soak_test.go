package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/claim"
)

// racers is the number of covens that compete for the same task.
const racers = 32

// TestSoak lets many covens race for one task, SOAK_ROUNDS times: one of them runs it, the others name its
// holder. In some rounds the process that got the task is killed repeatedly, and others take the task over.
func TestSoak(t *testing.T) {
	longRun(t)
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("SOAK_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	g := newArena(t)
	kills := []string{
		"claim.take.before", "claim.take.after", "session.freeze.after", "event.written.session.started:1:lost", "event.after.session.started",
		"script.ended", "event.written.step.completed:1:torn", "land.intent", "land.checkout.after", "land.ref.after", "task.after.rename:2",
		"complete.left", "claim.release.after",
	}
	for n := range rounds {
		id := g.add(fmt.Sprintf("Race %d", n))
		switch n % 3 {
		case 0:
			g.held(id)
		case 1:
			g.free(id)
		default:
			g.killed(id, kills[n/3%len(kills)])
		}
		g.settled(id)
	}
}

// A coven on another machine holds a task until its lease expires. The name in the claim simulates the
// other machine.
func TestLeaseOfAnotherMachine(t *testing.T) {
	g := newArena(t)
	id := g.add("Far away")
	g.killAt(id, "event.after.step.started")
	held := g.takeOver(id, "coven/elsewhere/77", time.Now().Add(time.Minute))
	out, code := g.run(id)
	if code != exit.Person || !strings.Contains(out, "is claimed by coven/elsewhere/77") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	if now := g.claim(id); now.Oid != held.Oid {
		t.Fatalf("the claim has changed: %+v", now)
	}
	if _, err := claim.Renew(t.Context(), g.repo, held, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if out, code := g.run(id); code != exit.OK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	g.settled(id)
}

// A coven is stopped before it lands, and its task is taken over. When it continues it must not land: its
// own check was before the takeover, but the transaction that moves the target fails.
func TestLateLanding(t *testing.T) {
	for _, point := range []string{"land.locked", "land.intent", "land.checkout.before", "land.ref.before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			g := newArena(t)
			id := g.add("Too late")
			before := g.checkout()
			g.open(id)
			late := g.command(id, failpoint.Env+"="+point+":1:stop")
			late.start(t)
			late.stopped(t)
			g.takeOver(id, "coven/elsewhere/77", time.Now().Add(time.Hour))
			if err := late.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			out, code := late.end()
			if code == exit.OK || !strings.Contains(out, "claim of the task was lost") {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			if after := g.checkout(); after != before {
				t.Errorf("the checkout has changed:\n%s\nbefore:\n%s", after, before)
			}
			// The new owner ends it.
			if _, err := claim.Renew(t.Context(), g.repo, g.claim(id), time.Now().Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			if out, code := g.run(id); code != exit.OK {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			g.settled(id)
		})
	}
}

// refused fails unless a coven that did not get the task names the holder.
func (g *arena) refused(out string, code int) {
	g.t.Helper()
	for _, reason := range []string{"is claimed by", "another coven is working on it", "has changed meanwhile", "is closed"} {
		if code == exit.Person && strings.Contains(out, reason) && strings.Contains(out, "next: ") {
			return
		}
	}
	g.t.Fatalf("exit code %d of a coven that did not get the task:\n%s", code, out)
}

// held plays a round in which the winner works until all others have given up.
func (g *arena) held(id string) {
	g.t.Helper()
	all := g.race(id, racers)
	type end struct {
		out  string
		code int
	}
	ends := make(chan end)
	for _, r := range all {
		go func() {
			out, code := r.end()
			ends <- end{out, code}
		}()
	}
	for range racers - 1 {
		e := <-ends
		g.refused(e.out, e.code)
	}
	g.open(id)
	if e := <-ends; e.code != exit.OK || !strings.Contains(e.out, "completed: landed") {
		g.t.Fatalf("exit code %d of the one that got the task:\n%s", e.code, e.out)
	}
}

// free plays a round in which some covens start after the task is done.
func (g *arena) free(id string) {
	g.t.Helper()
	g.open(id)
	g.won(g.race(id, racers), false)
}

// killed plays a round in which a quarter of the covens are killed at a point if they reach it. The others
// start after them.
func (g *arena) killed(id, point string) {
	g.t.Helper()
	g.open(id)
	early := g.race(id, racers/4, failpoint.Env+"="+point)
	died := 0
	for _, r := range early {
		out, code := r.end()
		switch {
		case code == -1:
			died++
		case code != exit.OK:
			g.refused(out, code)
		}
	}
	if died == 0 {
		g.t.Fatalf("no coven was killed at %s", point)
	}
	g.won(g.race(id, racers-racers/4), true)
}

// won waits for covens, at most one of which may run the task. If before is set, the task may have been
// done before, so all of them may be refused.
func (g *arena) won(all []*racer, before bool) {
	g.t.Helper()
	won := 0
	for _, r := range all {
		out, code := r.end()
		if code != exit.OK {
			g.refused(out, code)
			continue
		}
		won++
	}
	if won > 1 || won == 0 && !before {
		g.t.Fatalf("%d covens ran the task", won)
	}
}
