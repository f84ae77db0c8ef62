package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/pool"
)

// These benchmarks measure the overhead before the start of the agent, and between its end and the landed
// change, in a repository of 10,000 files. The floor is the minimum of git commands for the same work, in
// the same run.

// pathRounds is the number of measurements of each. The medians count.
const pathRounds = 7

// pathFiles is the number of files in the repository, a hundred in each directory.
const pathFiles = 10_000

// pathRow has the target and the last recorded value, as multiples of the floor.
type pathRow struct{ target, recorded float64 }

// limit returns the maximum that TestPathCosts accepts: 50 percent more than the target, or than the record
// where the target is missed.
func (r pathRow) limit() float64 { return 1.5 * max(r.target, r.recorded) }

func pathRows() map[string]pathRow {
	return map[string]pathRow{"start-warm": {1.5, 5.8}, "start-empty": {1.2, 2.9}, "land": {3, 1.2}}
}

// BenchmarkPath measures: start-warm, from the start of coven run to that of the agent's program, with a
// worktree in the pool, compared with taking a worktree from the pool and 5 programs that do nothing;
// start-empty, the same without a pool, compared with git worktree add and these 5; land, from the end of
// the agent's program to the end of the session, compared with git add, commit and merge.
func BenchmarkPath(b *testing.B) {
	var measured map[string]*pathCost
	for _, name := range []string{"start-warm", "start-empty", "land"} {
		b.Run(name, func(b *testing.B) {
			if measured == nil {
				measured = pathCosts(b)
			}
			took, floor, ratio := measured[name].medians()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took, "ms")
			b.ReportMetric(floor, "floor-ms")
			b.ReportMetric(ratio, "x/floor")
		})
	}
}

// TestPathCosts fails if one of the paths is much slower than recorded.
func TestPathCosts(t *testing.T) {
	measuresSpeed(t)
	for name, c := range pathCosts(t) {
		took, _, ratio := c.medians()
		row := pathRows()[name]
		t.Logf("%s: %.0f ms, %.2f of the floor; the target is %.1f", name, took, ratio, row.target)
		if ratio > row.limit() {
			t.Errorf("%s: %.2f of the floor, more than %.2f", name, ratio, row.limit())
		}
	}
}

// pathCost holds times in milliseconds.
type pathCost struct{ took, floor []float64 }

func (c *pathCost) note(took, floor time.Duration) {
	c.took, c.floor = append(c.took, took.Seconds()*1000), append(c.floor, floor.Seconds()*1000)
}

// medians also returns the median of the ratios, each of two consecutive measurements.
func (c *pathCost) medians() (took, floor, ratio float64) {
	var ratios []float64
	for i := range c.took {
		ratios = append(ratios, c.took[i]/c.floor[i])
	}
	return median(c.took), median(c.floor), median(ratios)
}

func pathCosts(b testing.TB) map[string]*pathCost {
	b.Helper()
	found := map[string]*pathCost{"start-warm": {}, "start-empty": {}, "land": {}}
	r := newPathRepo(b)
	r.runLong(b, "warm") // fills coven's caches and the pool
	for round := range pathRounds {
		s := r.run(b, fmt.Sprint("warm ", round))
		found["start-warm"].note(s.agent.Sub(s.began), r.recycle(b)+r.programs(b))
		found["land"].note(s.ended.Sub(s.idle), r.landed(b))
		must(b, os.RemoveAll(filepath.Join(r.root+".coven", ".pool")))
		s = r.runLong(b, fmt.Sprint("empty ", round))
		found["start-empty"].note(s.agent.Sub(s.began), r.added(b)+r.programs(b))
	}
	return found
}

// pathRepo is a repository with an agent that only records the time.
type pathRepo struct {
	coven, root string
	long        string // while it exists, the agent takes two seconds
	env         []string
}

// agentScript is the program of the agent: the fake CLI, and a record of the times when it starts and ends.
const agentScript = `#!/bin/sh
if test "$1" = --version; then exec %[1]s --version; fi
date +%%s%%N > agent-began
if test -e %[2]s; then sleep 2.1; fi
%[1]s "$@"
date +%%s%%N > agent-ended
`

func newPathRepo(b testing.TB) *pathRepo {
	b.Helper()
	dir := benchDir(b)
	api, err := fakeapi.New(fakeapi.Scenario{Conversations: []fakeapi.Conversation{{Turns: []fakeapi.Turn{{Text: "Done."}}}}})
	must(b, err)
	b.Cleanup(func() { _ = api.Close() })
	cli, err := exec.LookPath("claude")
	must(b, err)
	bin := filepath.Join(dir, "bin")
	must(b, errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "claude"), fmt.Appendf(nil, agentScript, cli, filepath.Join(dir, "long")), 0o755)))
	r := &pathRepo{coven: builtCoven(b), root: filepath.Join(dir, "repo"), long: filepath.Join(dir, "long"), env: benchEnv(dir)}
	r.env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	r.env = append(r.env, "ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=dummy")
	benchRepo(b, r.root, 0, 0)
	grimoire := "name: bench\nsteps:\n  - {name: work, type: agent, prompt: default}\n  - {name: land, type: merge}\n"
	must(b, os.WriteFile(filepath.Join(r.root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	for i := range pathFiles {
		name := filepath.Join(r.root, fmt.Sprintf("dir%d/file%d.txt", i/100, i))
		must(b, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, fmt.Appendf(nil, "file %d\n", i), 0o644)))
	}
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		r.git(b, r.root, strings.Fields(line)...)
	}
	return r
}

func (r *pathRepo) git(b testing.TB, dir string, args ...string) time.Duration {
	b.Helper()
	return timed(b, dir, r.env, "git", args...).wall
}

// pathTimes are the times of the phases of a run.
type pathTimes struct{ began, agent, idle, ended time.Time }

// run runs a task from start to end.
func (r *pathRepo) run(b testing.TB, title string) pathTimes {
	b.Helper()
	s := pathTimes{began: time.Now()}
	timed(b, r.root, r.env, r.coven, "run", "-p", title, "--auto-approve")
	s.agent, s.idle = r.noted(b, "agent-began"), r.noted(b, "agent-ended")
	journals, err := filepath.Glob(filepath.Join(r.root, session.Dir, "*-"+strings.ReplaceAll(title, " ", "-"), "events.jsonl"))
	if err != nil || len(journals) != 1 {
		b.Fatalf("%s has the journals %v, %v", title, journals, err)
	}
	events, err := event.Read(journals[0])
	must(b, err)
	last := events[len(events)-1]
	if last.Type != event.SessionCompleted {
		b.Fatalf("%s ended with %s", title, last.Type)
	}
	s.ended = last.Time
	return s
}

// runLong is run with an agent that works for two seconds, as real ones do. Otherwise the files of a new
// worktree would be as old as its index, in seconds, and git would have to read them all to compare them.
func (r *pathRepo) runLong(b testing.TB, title string) pathTimes {
	b.Helper()
	must(b, os.WriteFile(r.long, nil, 0o600))
	defer func() { must(b, os.Remove(r.long)) }()
	return r.run(b, title)
}

// noted returns the time in a file that the agent wrote and that has landed.
func (r *pathRepo) noted(b testing.TB, name string) time.Time {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, name))
	must(b, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	must(b, err)
	return time.Unix(0, n)
}

// programs runs 5 programs that do nothing.
func (r *pathRepo) programs(b testing.TB) (all time.Duration) {
	b.Helper()
	for range 5 {
		all += timed(b, r.root, r.env, "/bin/true").wall
	}
	return all
}

// recycle takes a worktree from the pool and returns it.
func (r *pathRepo) recycle(b testing.TB) time.Duration {
	b.Helper()
	repo, err := worktree.Open(b.Context(), r.root)
	must(b, err)
	repo.Pool = worktree.Pool{Bytes: 8 << 30}
	start := time.Now()
	w, err := worktree.Add(b.Context(), repo, worktree.AddRequest{TaskID: "recycled", Base: "main"})
	must(b, err)
	took := time.Since(start)
	tip, err := w.Tip(b.Context())
	must(b, err)
	_, err = worktree.Remove(b.Context(), w, worktree.RemoveRequest{Landed: tip})
	must(b, err)
	pool.Wait(repo)
	return took
}

// added creates a worktree with git.
func (r *pathRepo) added(b testing.TB) time.Duration {
	b.Helper()
	beside := r.root + "-beside"
	took := r.git(b, r.root, "worktree", "add", "-q", "--detach", beside, "main")
	r.git(b, r.root, "worktree", "remove", "--force", beside)
	return took
}

// landed lands a change of two files with git.
func (r *pathRepo) landed(b testing.TB) time.Duration {
	b.Helper()
	beside := r.root + "-beside"
	r.git(b, r.root, "worktree", "add", "-q", "--detach", beside, "main")
	now := fmt.Appendf(nil, "%d\n", time.Now().UnixNano())
	for _, name := range []string{"agent-began", "agent-ended"} {
		must(b, os.WriteFile(filepath.Join(beside, name), now, 0o644))
	}
	took := r.git(b, beside, "add", "-A") + r.git(b, beside, "commit", "-q", "-m", "work")
	cmd := exec.CommandContext(b.Context(), "git", "rev-parse", "HEAD")
	cmd.Dir, cmd.Env = beside, r.env
	tip, err := cmd.Output()
	must(b, err)
	took += r.git(b, r.root, "merge", "-q", "--ff-only", strings.TrimSpace(string(tip)))
	r.git(b, r.root, "worktree", "remove", "--force", beside)
	return took
}
