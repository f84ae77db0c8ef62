package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/session"
)

// These benchmarks compare the cost of a task when one coven runs many tasks with its cost for few tasks:
// no work of coven for a task may depend on the number of earlier tasks. COVEN_BENCH_TASKS is the large
// number (1000).

// few is the number of tasks for the floor.
const few = 50

const benchGrimoire = `name: bench
steps:
  - {name: make, type: script, command: "echo {{.task.id}} >> dir{{.task.priority}}/{{.task.id}}"}
  - {name: see, type: script, command: "cat dir{{.task.priority}}/{{.task.id}}"}
  - {name: land, type: merge}
`

func BenchmarkTask(b *testing.B) {
	many := manyTasksHere()
	for b.Loop() {
		// The floor is measured before and after, because of other load on the machine.
		before, of, after := runTasks(b, few, many, 0), runTasks(b, many, many, 0), runTasks(b, few, many, 0)
		report(b, of, before, after)
	}
}

// BenchmarkLateTask measures the same for the last of many tasks, without running all of them.
func BenchmarkLateTask(b *testing.B) {
	many := manyTasksHere()
	for b.Loop() {
		before, of, after := runTasks(b, few, many, 0), runTasks(b, few, many, many), runTasks(b, few, many, 0)
		report(b, of, before, after)
	}
}

func manyTasksHere() int {
	if n, err := strconv.Atoi(os.Getenv("COVEN_BENCH_TASKS")); err == nil && n > 0 {
		return n
	}
	return 1000
}

func report(b *testing.B, of, before, after cost) {
	b.Helper()
	wall, cpu := (before.wall+after.wall)/2, (before.cpu+after.cpu)/2
	b.ReportMetric(of.wall.Seconds()*1000, "wall-ms/task")
	b.ReportMetric(of.cpu.Seconds()*1000, "cpu-ms/task")
	b.ReportMetric(wall.Seconds()*1000, "floor-wall-ms/task")
	b.ReportMetric(cpu.Seconds()*1000, "floor-cpu-ms/task")
	b.ReportMetric(of.wall.Seconds()/wall.Seconds(), "wall/floor")
	b.ReportMetric(of.cpu.Seconds()/cpu.Seconds(), "cpu/floor")
}

// cost is the cost of one task.
type cost struct{ wall, cpu time.Duration }

// runTasks runs n tasks in a repository with the given number of files. Each task changes one file, so that
// the repository does not grow with the tasks. done tasks were run there before.
func runTasks(b *testing.B, n, files, done int) cost {
	b.Helper()
	dir, err := os.MkdirTemp(fastDir(), "cv")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, env := filepath.Join(dir, "repo"), benchEnv(dir)
	benchRepo(b, root, n+min(done, 1), files) // one task shows what a task leaves behind
	for _, argv := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		timed(b, root, env, "git", argv...)
	}
	if done > 0 {
		pretend(b, root, env, done)
	}
	all := timed(b, root, env, "coven", "run", "-j", "2", "--auto-approve", "--yes")
	return cost{all.wall / time.Duration(n), all.cpu / time.Duration(n)}
}

// benchEnv returns the environment of a user whose home is dir.
func benchEnv(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.invalid",
	}
}

// fastDir returns a directory whose disk does not dominate the measurement.
func fastDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

// tasksFile is the file of the tracker.
const tasksFile = ".beads/issues.jsonl"

// pretend runs one task and multiplies its records to those of n tasks: sessions, closed tasks, snapshots,
// and the objects of as many commits.
func pretend(b *testing.B, root string, env []string, n int) {
	b.Helper()
	timed(b, root, env, "coven", "run", "-n", "1", "--auto-approve")
	made, err := filepath.Glob(filepath.Join(root, session.Dir, "*"))
	if err != nil || len(made) != 1 {
		b.Fatal(made, err)
	}
	id := filepath.Base(made[0])
	tasks, err := os.ReadFile(filepath.Join(root, tasksFile))
	must(b, err)
	line, _, _ := bytes.Cut(tasks, []byte("\n"))
	var refs, names bytes.Buffer
	for i := range n {
		copied := fmt.Sprintf("%s-done-%d", id, i)
		rename := func(text []byte) []byte {
			text = bytes.ReplaceAll(text, []byte(id), []byte(copied))
			return bytes.ReplaceAll(text, []byte(`"b-0"`), fmt.Appendf(nil, `"done-%d"`, i))
		}
		for _, name := range []string{"events.jsonl", "metadata.json", "session.md", "plan.yaml"} {
			text, err := os.ReadFile(filepath.Join(made[0], name))
			must(b, err)
			must(b, os.MkdirAll(filepath.Join(root, session.Dir, copied), 0o755))
			must(b, os.WriteFile(filepath.Join(root, session.Dir, copied, name), rename(text), 0o644))
		}
		tasks = append(append(tasks, rename(line)...), '\n')
		fmt.Fprintf(&refs, "create refs/coven/snapshots/%s refs/heads/main\n", copied)
		for part := range objectsOfTask {
			name := filepath.Join(root, ".git", "junk", fmt.Sprintf("%d-%d", i, part))
			must(b, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(name), 0o644)))
			fmt.Fprintln(&names, name)
		}
	}
	must(b, os.WriteFile(filepath.Join(root, tasksFile), tasks, 0o644))
	for _, run := range []struct {
		in   *bytes.Buffer
		args []string
	}{{&refs, []string{"update-ref", "--stdin"}}, {&names, []string{"hash-object", "-w", "--stdin-paths"}}} {
		cmd := exec.CommandContext(b.Context(), "git", run.args...)
		cmd.Dir, cmd.Env, cmd.Stdin = root, env, run.in
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", run.args, err, out)
		}
	}
}

// objectsOfTask is the number of git objects of a task.
const objectsOfTask = 20

// dirs is the number of directories with files.
const dirs = 5

// benchRepo creates the files and n tasks.
func benchRepo(b testing.TB, root string, n, files int) {
	b.Helper()
	contents := map[string]string{
		".gitignore":                  ".beads\n.coven/run\n.coven/sessions\n.coven/worktrees\n.coven/.gitignore\n",
		".coven/config.yaml":          "grimoire: bench\nchecks: []\n",
		".coven/grimoires/bench.yaml": benchGrimoire,
	}
	var tasks bytes.Buffer
	for i := range files {
		id := fmt.Sprintf("b-%d", i)
		contents[fmt.Sprintf("dirP%d/%s", i%dirs, id)] = id + "\n"
		if i >= n {
			continue
		}
		line, err := json.Marshal(map[string]any{
			"_type": "issue", "id": id, "title": fmt.Sprintf("Change file %d", i), "status": "open", "priority": i % dirs,
			"issue_type": "task", "created_at": time.Unix(int64(i), 0).UTC(), "updated_at": time.Unix(int64(i), 0).UTC(),
			"description": "One of many tasks, with about as much text as a person writes who is in a hurry.",
		})
		if err != nil {
			b.Fatal(err)
		}
		tasks.Write(append(line, '\n'))
	}
	contents[tasksFile] = tasks.String()
	for name, text := range contents {
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
}

// timed runs a program and returns the time that it and its children took.
func timed(b testing.TB, dir string, env []string, program string, args ...string) cost {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		b.Fatalf("%s %v: %v\n%s", program, args, err, out[max(0, len(out)-4000):])
	}
	return cost{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}
