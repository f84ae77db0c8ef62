package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/exit"
)

// newReverts returns waiting tasks, each with an edited worktree.
func newReverts(t *testing.T, tasks int) (all []*lossCase) {
	t.Helper()
	g := newArena(t)
	for n := range tasks {
		c := &lossCase{arena: g, random: rand.New(rand.NewPCG(uint64(n), 18))}
		c.reach("waiting")
		all = append(all, c)
	}
	return all
}

// mark changes the worktree so that no snapshot has its state, and returns its files and the number of the
// snapshot that the next revert takes of it.
func (c *lossCase) mark(text string) (before map[string]string, next int) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.w, "mark"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	out, _ := c.covenEnds(nil, "snapshots", c.id, "--json")
	var all []struct{ N int }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 {
		c.t.Fatalf("%v: %s", err, out)
	}
	return c.files(), all[len(all)-1].N + 1
}

// undone fails unless reverting to a snapshot restores exactly these files.
func (c *lossCase) undone(before map[string]string, n int, after string) {
	c.t.Helper()
	if out, code := c.covenEnds(nil, "revert", c.id, strconv.Itoa(n)); code != exit.OK {
		c.t.Fatalf("%s: exit code %d\n%s", after, code, out)
	}
	if now := c.files(); !maps.Equal(now, before) {
		c.t.Fatalf("%s: snapshot %d has\n%q\nthe worktree had\n%q", after, n, now, before)
	}
}

// coven revert is killed at the start and after the end of each of its git processes. The next revert
// finishes, and the files that the killed one found can be restored from a snapshot.
func TestRevertKilledAtEachGit(t *testing.T) {
	if racing {
		t.Skip("nothing runs at the same time")
	}
	c := newReverts(t, 1)[0]
	for _, fault := range []string{"coven killed", "coven killed on"} {
		for at := 1; ; at++ {
			when := fmt.Sprintf("%s %d", fault, at)
			before, next := c.mark(when)
			code := c.destroy(lossCommand{args: []string{"revert", "TASK", "1"}}, fault, at)
			if over := code == exit.OK; over && at < 5 {
				t.Fatalf("%s: it was not killed", when)
			} else if !over && code != -1 {
				t.Fatalf("%s: exit code %d\n%s", when, code, c.script[len(c.script)-1])
			}
			if out, again := c.covenEnds(nil, "revert", c.id, "1"); again != exit.OK {
				t.Fatalf("%s: it does not work again: %d\n%s", when, again, out)
			}
			if _, err := os.Lstat(filepath.Join(c.w, "mark")); err == nil {
				t.Fatalf("%s: the next revert did not finish", when)
			}
			c.undone(before, next, when)
			if code == exit.OK {
				t.Logf("%s: all %d git processes", fault, at-1)
				break
			}
		}
	}
}

// Two sessions are reverted at once, each by two covens. Those of one session take turns, or one of them
// reports that the other has the session, and no state is lost.
func TestRevertAtOnce(t *testing.T) {
	all := newReverts(t, 2)
	for round := range 4 {
		var running [][]*racer
		var befores []map[string]string
		var nexts []int
		for _, c := range all {
			before, next := c.mark(fmt.Sprint("round ", round))
			befores, nexts = append(befores, before), append(nexts, next)
			running = append(running, []*racer{c.coven(nil, "revert", c.id, "1"), c.coven(nil, "revert", c.id, "1")})
		}
		for i := range 2 {
			for _, session := range running {
				session[i].start(t)
			}
		}
		for i, c := range all {
			done := 0
			for _, r := range running[i] {
				out, code := r.end()
				switch {
				case code == exit.OK:
					done++
				case code != exit.Person || !strings.Contains(out, "next: "):
					t.Fatalf("exit code %d\n%s", code, out)
				}
			}
			if _, err := os.Lstat(filepath.Join(c.w, "mark")); err == nil || done == 0 {
				t.Fatalf("%d of two covens have reverted task %s", done, c.id)
			}
			c.undone(befores[i], nexts[i], fmt.Sprint("round ", round))
		}
	}
}
