package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// These benchmarks compare an agent of coven's own loop with the real Claude Code CLI: the same task, the
// same script of the model and the same machine, one after the other in the same run.

// loopRounds is the number of measurements of each provider. The medians count.
const loopRounds = 7

// loopCalls is the number of files that the agent reads, one in each turn.
const loopCalls = 20

// loopCost is the cost of an agent of a provider.
type loopCost struct {
	first  []float64 // from the start of coven to the first request for a turn, in ms
	call   []float64 // from one request to the next, in ms: the answer, the tool call and its result
	memory []float64 // of all processes, in MB; shared memory is divided
}

// BenchmarkLoop measures coven's own loop and Claude Code.
func BenchmarkLoop(b *testing.B) {
	var measured map[string]*loopCost
	for _, provider := range []string{"anthropic-loop", "claude"} {
		b.Run(provider, func(b *testing.B) {
			if measured == nil {
				measured = loopCosts(b)
			}
			c := measured[provider]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(c.first), "first-ms")
			b.ReportMetric(median(c.call), "call-ms")
			b.ReportMetric(median(c.memory), "MB")
		})
	}
}

// TestLoopIsNotSlower fails if the loop takes more time or memory than Claude Code.
func TestLoopIsNotSlower(t *testing.T) {
	if measuresSpeed(t) {
		t.Skip("make speed runs it: the CLI takes long to start")
	}
	all := loopCosts(t)
	loop, cli := all["anthropic-loop"], all["claude"]
	for what, of := range map[string]func(*loopCost) float64{
		"ms to the first request": func(c *loopCost) float64 { return median(c.first) },
		"ms for a call":           func(c *loopCost) float64 { return median(c.call) },
		"MB":                      func(c *loopCost) float64 { return median(c.memory) },
	} {
		t.Logf("%s: %.1f, with Claude Code %.1f", what, of(loop), of(cli))
		if of(loop) > of(cli) {
			t.Errorf("%s: %.1f are more than the %.1f of Claude Code", what, of(loop), of(cli))
		}
	}
}

func loopCosts(b testing.TB) map[string]*loopCost {
	b.Helper()
	cli := os.Getenv("COVEN_REAL_CLAUDE")
	if cli == "" {
		b.Skip("the real Claude Code CLI is not here: run .ci/claude .tools, and set COVEN_REAL_CLAUDE")
	}
	if runtime.GOOS != "linux" {
		b.Skip("only Linux tells")
	}
	r := newLoopRepo(b, cli)
	all := map[string]*loopCost{"anthropic-loop": {}, "claude": {}}
	for provider := range all {
		r.run(b, provider, "warm up") // fills coven's caches
	}
	for round := range loopRounds {
		for provider, c := range all {
			c.note(r.run(b, provider, fmt.Sprint("round ", round)))
		}
	}
	return all
}

func (c *loopCost) note(m loopTimes) {
	c.first, c.call, c.memory = append(c.first, m.first.Seconds()*1000), append(c.call, m.call.Seconds()*1000), append(c.memory, m.memory)
}

// loopTimes is the cost of one run.
type loopTimes struct {
	first, call time.Duration
	memory      float64
}

// loopRepo is a repository whose agents read files.
type loopRepo struct {
	coven, root string
	env         []string
}

func newLoopRepo(b testing.TB, cli string) *loopRepo {
	b.Helper()
	dir := benchDir(b)
	bin := filepath.Join(dir, "bin")
	must(b, errors.Join(os.Mkdir(bin, 0o755), os.Symlink(cli, filepath.Join(bin, "claude"))))
	r := &loopRepo{coven: builtCoven(b), root: filepath.Join(dir, "repo"), env: benchEnv(dir)}
	r.env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	benchRepo(b, r.root, 0, 200)
	grimoire := "name: bench\nsteps:\n  - {name: work, type: agent, prompt: default}\n"
	must(b, os.WriteFile(filepath.Join(r.root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(b, r.root, r.env, "git", strings.Fields(line)...)
	}
	return r
}

// run measures an agent of a provider that does a task.
func (r *loopRepo) run(b testing.TB, provider, task string) loopTimes {
	b.Helper()
	api := loopAPI(b, provider)
	defer api.Close() //nolint:errcheck // it only served
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.coven, "run", "-p", provider+" "+task, "--provider", provider)
	cmd.Dir, cmd.Env, cmd.Stderr = r.root, append(r.env, "ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=dummy"), os.Stderr
	began := time.Now()
	must(b, cmd.Start())
	must(b, api.WaitHeld(ctx, "end"))
	memory := proportional(b, cmd.Process.Pid)
	api.Release("end")
	must(b, cmd.Wait())
	var turns []time.Time
	for _, request := range api.Requests() {
		if request.Kind == fakeapi.KindTurn {
			turns = append(turns, request.Time)
		}
	}
	if len(turns) != loopCalls+1 {
		b.Fatalf("%s asked for %d turns", provider, len(turns))
	}
	return loopTimes{turns[0].Sub(began), turns[loopCalls].Sub(turns[0]) / loopCalls, memory}
}

// loopAPI returns a model that reads one file after another.
func loopAPI(b testing.TB, provider string) *fakeapi.Server {
	b.Helper()
	read, key := "Read", "file_path"
	if provider != "claude" {
		read, key = "read", "path"
	}
	var turns []fakeapi.Turn
	for i := range loopCalls {
		turns = append(turns, fakeapi.Turn{Text: "Next.", Tools: []fakeapi.Tool{{Name: read, Input: map[string]any{key: fmt.Sprintf("dirP%d/b-%d", i%dirs, i)}}}})
	}
	api, err := fakeapi.New(fakeapi.Scenario{Conversations: []fakeapi.Conversation{{Turns: append(turns, fakeapi.Turn{Hold: "end", Text: "Done."})}}})
	must(b, err)
	return api
}

// proportional returns the memory in MB of a process and its descendants. Shared pages count in proportion.
func proportional(b testing.TB, pid int) float64 {
	b.Helper()
	all := float64(numberIn(b, pid, "smaps_rollup", `Pss: +(\d+)`)) / 1024
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	must(b, err)
	for _, file := range children {
		list, err := os.ReadFile(file)
		must(b, err)
		for field := range strings.FieldsSeq(string(list)) {
			child, err := strconv.Atoi(field)
			must(b, err)
			if isThere(child) {
				all += proportional(b, child)
			}
		}
	}
	return all
}

// isThere reports whether a process still has memory. A process that has ended may not have been waited
// for.
func isThere(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && regexp.MustCompile(`VmRSS`).Match(text)
}
