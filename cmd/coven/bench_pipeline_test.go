package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pipeline is the minimal shell script that lands the same changes: the floor of the cost of a task. xargs
// -P runs it for each task.
const pipeline = `
set -e
flock ../lock git worktree add -q -b t-$1 ../w-$1 main
cd ../w-$1
%s
git add -A
git commit -q -m "Change $1"
cd ../repo
exec 9> ../lock
flock 9
git merge -q -m "Land $1" t-$1
git worktree remove --force ../w-$1
git branch -q -D t-$1
`

// BenchmarkPipeline measures tasks per second, compared with the same steps as a shell pipeline: a task
// adds a file in a repository of 200, and lands. COVEN_BENCH_DIR is the directory of the repositories.
func BenchmarkPipeline(b *testing.B) {
	coven := builtCoven(b)
	for _, sandbox := range []bool{false, true} {
		for _, width := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("sandbox=%v/j=%d", sandbox, width), func(b *testing.B) {
				var rates, floors, ratios []float64
				for b.Loop() {
					floor := floorRate(b, width, tasksOfRate)
					rate := taskRate(b, coven, width, tasksOfRate, sandbox)
					rates, floors, ratios = append(rates, rate), append(floors, floor), append(ratios, rate/floor)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(rates), "tasks/s")
				b.ReportMetric(median(floors), "floor-tasks/s")
				b.ReportMetric(median(ratios), "of-floor")
			})
		}
	}
}

// tasksOfRate is the number of tasks in one measurement.
const tasksOfRate = 30

// A speedRow is the rate of tasks relative to that of the pipeline: the target, and the last recorded
// value. The short form, if it has the row, runs fewer tasks, so that the start of coven weighs more.
type speedRow struct {
	sandbox                 bool
	width                   int
	target, recorded, short float64
}

func speedRows() []speedRow {
	return []speedRow{
		{sandbox: false, width: 1, target: 0.6, recorded: 0.66, short: 0.5},
		{sandbox: false, width: 4, target: 0.6, recorded: 0.6},
		{sandbox: true, width: 1, target: 0.4, recorded: 0.6},
		{sandbox: true, width: 4, target: 0.5, recorded: 0.55, short: 0.5},
	}
}

// TestSpeed fails if coven is much slower than recorded.
func TestSpeed(t *testing.T) {
	short, tasks := measuresSpeed(t), tasksOfRate
	coven := builtCoven(t)
	for _, row := range speedRows() {
		if short {
			tasks, row.recorded = 10, row.short
		}
		if row.recorded == 0 {
			continue
		}
		var ratios []float64
		for range 7 {
			floor := floorRate(t, row.width, tasks)
			ratios = append(ratios, taskRate(t, coven, row.width, tasks, row.sandbox)/floor)
		}
		// Each task may take 50 percent more than the target, or than the record where the target is
		// missed.
		got, limit := median(ratios), min(row.target, row.recorded)/1.5
		t.Logf("sandbox=%v -j %d: %.2f of the pipeline's rate; the target is %.1f", row.sandbox, row.width, got, row.target)
		if got < limit {
			t.Errorf("sandbox=%v -j %d: %.2f of the pipeline's rate, less than %.2f", row.sandbox, row.width, got, limit)
		}
	}
}

// measuresSpeed skips a performance test unless make speed or make speed-short, the form of CI, runs it.
func measuresSpeed(t *testing.T) (short bool) {
	t.Helper()
	form := os.Getenv("COVEN_SPEED")
	if form == "" {
		t.Skip("make speed and make speed-short run it")
	}
	return form == "short"
}

// builtCoven returns the path of coven as users get it. make speed and make speed-short build it once for
// all their tests.
func builtCoven(b testing.TB) string {
	b.Helper()
	coven := os.Getenv("COVEN_BUILT")
	if coven == "" {
		coven = filepath.Join(b.TempDir(), "coven")
		buildCoven(b, coven, nil)
	}
	return coven
}

func benchDir(b testing.TB) string {
	b.Helper()
	parent := os.Getenv("COVEN_BENCH_DIR")
	if parent == "" {
		parent = fastDir()
	}
	dir, err := os.MkdirTemp(parent, "cv")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rateRepo creates a repository with tasks.
func rateRepo(b testing.TB, dir string, tasks int) (root string, env []string) {
	b.Helper()
	root, env = filepath.Join(dir, "repo"), benchEnv(dir)
	benchRepo(b, root, tasks, 200)
	grimoire := fmt.Sprintf("name: bench\nsteps:\n  - {name: make, type: script, command: %q}\n  - {name: land, type: merge}\n", "echo x > new-{{.task.id}}")
	must(b, os.WriteFile(filepath.Join(root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(b, root, env, "git", strings.Fields(line)...)
	}
	return root, env
}

// taskRate returns the number of tasks that coven lands per second.
func taskRate(b testing.TB, coven string, width, tasks int, sandbox bool) float64 {
	b.Helper()
	root, env := rateRepo(b, benchDir(b), tasks)
	args := []string{"run", "-j", strconv.Itoa(width), "--auto-approve", "--yes"}
	if !sandbox {
		args = append(args, "--unsandboxed")
	}
	took := timed(b, root, env, coven, args...)
	landed(b, root, env, tasks)
	return float64(tasks) / took.wall.Seconds()
}

// floorRate returns the number of tasks that the pipeline lands per second.
func floorRate(b testing.TB, width, tasks int) float64 {
	b.Helper()
	root, env := rateRepo(b, benchDir(b), tasks)
	must(b, os.WriteFile(filepath.Join(root, "..", "task"), fmt.Appendf(nil, pipeline, `sh -c "echo x > new-b-$1"`), 0o755))
	took := timed(b, root, env, "sh", "-c", fmt.Sprintf("seq 0 %d | xargs -P %d -n 1 sh ../task", tasks-1, width))
	landed(b, root, env, tasks)
	return float64(tasks) / took.wall.Seconds()
}

// landed fails unless all tasks have landed.
func landed(b testing.TB, root string, env []string, tasks int) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", "ls-tree", "--name-only", "main")
	cmd.Dir, cmd.Env = root, env
	out, err := cmd.Output()
	must(b, err)
	if n := strings.Count(string(out), "new-b-"); n != tasks {
		b.Fatalf("%d of %d tasks landed", n, tasks)
	}
}
