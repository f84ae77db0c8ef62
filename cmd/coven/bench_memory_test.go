package main

import (
	"bufio"
	"context"
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
)

// BenchmarkMemory measures coven's own memory, without the text of the program, while it waits for tasks
// and while it runs some, and its threads while it runs the maximum number of tasks.
func BenchmarkMemory(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("only Linux tells")
	}
	idle, each := memory(b)
	threads := heldBy(b, builtCoven(b), maxTasks).threads
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(idle, "idle-MB")
	b.ReportMetric(each, "MB/task")
	b.ReportMetric(float64(threads), "threads")
}

// TestMemory fails if coven takes 50 percent more memory than the target, or than the last record where the
// target, 0.25 MB for a task, is missed. The short form leaves out the threads.
func TestMemory(t *testing.T) {
	const idleTarget, eachRecorded = 14, 0.6
	short := measuresSpeed(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	idle, each := memory(t)
	t.Logf("%.1f MB idle, %.2f MB more for a task", idle, each)
	if idle > 1.5*idleTarget || each > 1.5*eachRecorded {
		t.Errorf("that is more than %.1f MB, or more than %.2f MB", 1.5*idleTarget, 1.5*eachRecorded)
	}
	if short {
		return
	}
	threads, target := heldBy(t, builtCoven(t), maxTasks).threads, runtime.NumCPU()+16
	t.Logf("%d threads with %d tasks; the target is %d", threads, maxTasks, target)
	if threads > target+target/2 {
		t.Errorf("that is more than %d", target+target/2)
	}
}

// maxTasks is the maximum of -j.
const maxTasks = 64

// memory returns the memory of an idle coven, and the additional memory for each of 20 tasks, in MB.
func memory(b testing.TB) (idle, each float64) {
	b.Helper()
	const some = 20
	coven := builtCoven(b)
	without := heldBy(b, coven, 0).private
	return float64(without) / 1024, float64(heldBy(b, coven, some).private-without) / 1024 / some
}

// held is the resource usage of a process.
type held struct {
	private int // memory, in KB
	threads int
}

// heldBy measures a coven that runs tasks, each of which waits.
func heldBy(b testing.TB, coven string, tasks int) held {
	b.Helper()
	dir := benchDir(b)
	root, env, release := filepath.Join(dir, "repo"), benchEnv(dir), filepath.Join(dir, "release")
	benchRepo(b, root, tasks, 200)
	grimoire := fmt.Sprintf("name: bench\nsteps:\n  - {name: wait, type: script, command: 'while ! test -e %s; do sleep 0.2; done'}\n", release)
	must(b, os.WriteFile(filepath.Join(root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(b, root, env, "git", strings.Fields(line)...)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, coven, "run", "--watch", "-j", "64", "--auto-approve", "--yes")
	cmd.Dir, cmd.Env, cmd.Stderr = root, env, os.Stderr
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; n < max(tasks, 1) && lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "wait: started") || tasks == 0 && strings.HasPrefix(lines.Text(), "waiting for tasks") {
			n++
		}
	}
	h := leastOf(b, cmd.Process.Pid)
	must(b, os.WriteFile(release, nil, 0o644))
	must(b, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() { // until it has ended
	}
	_ = cmd.Wait() // it was interrupted
	return h
}

// leastOf returns the minimum usage of a process within a few seconds, in which Go returns unused memory.
func leastOf(b testing.TB, pid int) held {
	b.Helper()
	least := held{private: 1 << 40}
	for range 10 {
		<-time.After(300 * time.Millisecond)
		h := held{
			private: numberIn(b, pid, "smaps_rollup", `Anonymous: +(\d+)`), // the text of the program comes from its file
			threads: numberIn(b, pid, "status", `Threads:\s+(\d+)`),
		}
		least = held{min(least.private, h.private), max(least.threads, h.threads)}
	}
	return least
}

func numberIn(b testing.TB, pid int, file, pattern string) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	must(b, err)
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		b.Fatalf("%s has no %s", file, pattern)
	}
	n, err := strconv.Atoi(string(found[1]))
	must(b, err)
	return n
}
