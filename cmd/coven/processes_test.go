package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
)

// Most of git's time is the start of its processes. The number of processes that a task may start is
// limited, including those that git starts.
func TestGitProcesses(t *testing.T) {
	dir := t.TempDir()
	root, traces, settings := filepath.Join(dir, "repo"), filepath.Join(dir, "traces"), filepath.Join(dir, "gitconfig")
	env := append(benchEnv(dir), "GIT_CONFIG_GLOBAL="+settings)
	benchRepo(t, root, 14, 200)
	write := func(name, text string) {
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write(filepath.Join(root, ".coven", "grimoires", "bench.yaml"),
		"name: bench\nsteps:\n  - {name: make, type: script, command: \"echo x > new-{{.task.id}}\"}\n  - {name: land, type: merge}\n")
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(t, root, env, "git", strings.Fields(line)...)
	}
	must(t, os.Mkdir(traces, 0o755))
	write(settings, "[trace2]\n\teventTarget = "+traces+"\n")
	aged := time.Now().Add(-time.Hour) // coven checks again what has just changed
	for _, file := range []string{settings, filepath.Join(root, ".git", "config")} {
		must(t, os.Chtimes(file, aged, aged))
	}
	const limit = 22 // of each task; the target is 30
	for _, c := range []struct {
		name  string
		tasks int
	}{{"the first task", 1}, {"one that takes files of the pool", 1}, {"tasks that land beside others", 12}} {
		timed(t, root, env, "coven", "run", "-n", fmt.Sprint(c.tasks), "-j", "4", "--auto-approve", "--yes", "--unsandboxed")
		started, err := os.ReadDir(traces)
		must(t, err)
		t.Logf("%s: %d", c.name, len(started))
		if len(started) == 0 || len(started) > limit*c.tasks {
			t.Errorf("%s started %d processes of git: at most %d for each are allowed", c.name, len(started), limit)
		}
		for _, s := range started {
			must(t, os.Remove(filepath.Join(traces, s.Name())))
		}
	}
}

// A coven that waits for work polls without git processes, because it may wait for days.
func TestPollStartsNoGit(t *testing.T) {
	dir := t.TempDir()
	root, env := filepath.Join(dir, "repo"), benchEnv(dir)
	benchRepo(t, root, 2, 5)
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m first"} {
		timed(t, root, env, "git", strings.Fields(line)...)
	}
	// One task waits for a person, who may approve it at any time, so that its claim is polled, too.
	grimoire := "name: bench\nsteps:\n  - {name: make, type: script, command: \"echo x > new\"}\n  - {name: land, type: merge, require_review: true}\n"
	must(t, os.WriteFile(filepath.Join(root, ".coven", "grimoires", "bench.yaml"), []byte(grimoire), 0o644))
	waits := exec.CommandContext(t.Context(), "coven", "run", "-n", "1", "--unsandboxed")
	waits.Dir, waits.Env = root, env
	if out, err := waits.CombinedOutput(); waits.ProcessState.ExitCode() != int(exit.Person) {
		t.Fatalf("%v\n%s", err, out)
	}
	environment := project.NewEnv("test")
	environment.Workdir = func() (string, error) { return root, nil }
	environment.Getenv = func(string) string { return "" }
	p, err := project.Open(t.Context(), environment)
	must(t, err)
	queue := scheduler.NewReadyQueue(p, true)
	t.Setenv("PATH", "")
	for range 3 {
		items, err := queue.Next(t.Context(), nil)
		if err != nil || len(items) != 1 {
			t.Fatalf("a poll without git gives %d tasks: %v", len(items), err)
		}
	}
}
