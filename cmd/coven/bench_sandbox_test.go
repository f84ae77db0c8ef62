package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// BenchmarkSandbox measures the overhead of the sandbox for a task in a repository of 200 files. The task's
// step adds a file, which lands: coven commits it, or the step does. The floor is the same coven without a
// sandbox. Both run alternately, because of other load on the machine; the median of the differences
// counts.
func BenchmarkSandbox(b *testing.B) {
	dir := b.TempDir()
	sandboxed, bare := filepath.Join(dir, "coven"), filepath.Join(dir, "unsandboxed")
	buildCoven(b, sandboxed, nil)
	buildCoven(b, bare, map[string]string{"../../internal/control/workspace/sandbox.go": "testdata/unsandboxed.go"})
	for name, command := range map[string]string{
		"file": "echo x > new-{{.task.id}}", "commit": "echo x > new-{{.task.id}} && git add -A && git -c user.name=T -c user.email=t@example.invalid commit -qm {{.task.id}}",
	} {
		b.Run(name, func(b *testing.B) {
			var with, without, more []float64
			for b.Loop() {
				floor := sandboxTasks(b, bare, command)
				took := sandboxTasks(b, sandboxed, command)
				with, without, more = append(with, took), append(without, floor), append(more, took-floor)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(with), "ms/task")
			b.ReportMetric(median(without), "floor-ms/task")
			b.ReportMetric(median(more), "more-ms/task")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// buildCoven builds coven as users get it, with some files replaced.
func buildCoven(b testing.TB, to string, replace map[string]string) {
	b.Helper()
	absolute := map[string]string{}
	for file, with := range replace {
		from, err := filepath.Abs(file)
		must(b, err)
		absolute[from], err = filepath.Abs(with)
		must(b, err)
	}
	overlay := to + ".json"
	raw, err := json.Marshal(map[string]any{"Replace": absolute})
	must(b, errors.Join(err, os.WriteFile(overlay, raw, 0o600)))
	env := append(os.Environ(), "CGO_ENABLED=0")
	timed(b, ".", env, "go", "build", "-trimpath", "-overlay", overlay, "-o", to, ".")
}

// sandboxTasks runs tasks one after another in a repository of 200 files, and returns the
// milliseconds per task.
func sandboxTasks(b *testing.B, coven, command string) float64 {
	b.Helper()
	const tasks = 10
	dir, err := os.MkdirTemp(fastDir(), "cv")
	must(b, err)
	defer func() { _ = os.RemoveAll(dir) }()
	root, env := filepath.Join(dir, "repo"), benchEnv(dir)
	benchRepo(b, root, tasks, 200)
	grimoire := fmt.Sprintf("name: bench\nsteps:\n  - {name: make, type: script, command: %q}\n  - {name: land, type: merge}\n", command)
	must(b, os.WriteFile(filepath.Join(root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(b, root, env, "git", strings.Fields(line)...)
	}
	all := timed(b, root, env, coven, "run", "-j", "1", "--auto-approve", "--yes")
	return all.wall.Seconds() * 1000 / tasks
}
