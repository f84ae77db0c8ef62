package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/internal/session"
)

// These benchmarks measure how finished sessions slow down later commands. The floor is the same commands
// in the same run, in a repository with few sessions.

const (
	manySessions = 10_000
	fewSessions  = 10
)

func BenchmarkStatusAfterSessions(b *testing.B) { afterSessions(b, "status") }

func BenchmarkWhyAfterSessions(b *testing.B) { afterSessions(b, "why", "p-prompt-7") }

func BenchmarkRunAfterSessions(b *testing.B) {
	afterSessions(b, "run", "-p", "Another", "--grimoire", "bench", "--auto-approve")
}

// afterSessions times a command of coven in two repositories alternately.
func afterSessions(b *testing.B, args ...string) {
	many, few := finished(b, manySessions), finished(b, fewSessions)
	var took, floor []float64
	for b.Loop() {
		took = append(took, timed(b, many.root, many.env, "coven", args...).wall.Seconds()*1000)
		floor = append(floor, timed(b, few.root, few.env, "coven", args...).wall.Seconds()*1000)
	}
	of, beside := median(took), median(floor)
	b.ReportMetric(of, "ms")
	b.ReportMetric(beside, "floor-ms")
	b.ReportMetric(of-beside, "more-ms")
}

// sessionRepo is a repository with sessions.
type sessionRepo struct {
	root string
	env  []string
}

// finished returns a repository with n completed sessions: one of an ad-hoc prompt, and copies of it. If n
// is large, coven has an index of them.
func finished(b testing.TB, n int) sessionRepo {
	b.Helper()
	dir, err := os.MkdirTemp(fastDir(), "cv")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := sessionRepo{root: filepath.Join(dir, "repo"), env: benchEnv(dir)}
	benchRepo(b, r.root, 0, 5)
	must(b, os.WriteFile(filepath.Join(r.root, ".coven/grimoires/bench.yaml"), []byte("name: bench\nsteps:\n  - {name: make, type: script, command: date +%N > made}\n  - {name: land, type: merge}\n"), 0o644))
	for _, argv := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		timed(b, r.root, r.env, "git", argv...)
	}
	timed(b, r.root, r.env, "coven", "run", "-p", "Prompt", "--auto-approve")
	made, err := filepath.Glob(filepath.Join(r.root, session.Dir, "*"))
	if err != nil || len(made) != 1 {
		b.Fatal(made, err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"events.jsonl", "metadata.json", "session.md", "plan.yaml"} {
		files[name], err = os.ReadFile(filepath.Join(made[0], name))
		must(b, err)
	}
	id := filepath.Base(made[0])
	for i := range n - 1 {
		copied := fmt.Sprintf("%s-%d", id, i)
		at := filepath.Join(r.root, session.Dir, copied)
		must(b, os.Mkdir(at, 0o700))
		for name, text := range files {
			text = bytes.ReplaceAll(text, []byte(id), []byte(copied))
			text = bytes.ReplaceAll(text, []byte(`"p-prompt"`), fmt.Appendf(nil, `"p-prompt-%d"`, i))
			must(b, os.WriteFile(filepath.Join(at, name), text, 0o600))
		}
	}
	for !indexed(b, r, n) {
		timed(b, r.root, r.env, "coven", "status")
	}
	return r
}

// indexed reports whether commands can use an index of the n sessions. They add a session to the index some
// time after it has ended.
func indexed(b testing.TB, r sessionRepo, n int) bool {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, ".coven/run/sessions.index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.Fatal(err)
	}
	return n < 100 || bytes.Count(text, []byte("\n")) > n-100
}
