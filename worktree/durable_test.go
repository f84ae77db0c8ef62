package worktree

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// A gitRun is a git process, as reported by git itself.
type gitRun struct {
	argv    []string
	written int // number of files whose content it wrote out
	flushes int // number of times that it flushed the disk
}

// writer returns the git command if it writes objects or refs, or "".
func (g gitRun) writer() string {
	if slices.Contains(g.argv, "--refresh") {
		return "" // it only compares
	}
	for _, command := range []string{"update-ref", "commit-tree", "write-tree", "update-index", "unpack-objects", "index-pack"} {
		if slices.Contains(g.argv, command) {
			return command
		}
	}
	if slices.Contains(g.argv, "hash-object") && slices.Contains(g.argv, "-w") {
		return "hash-object"
	}
	return ""
}

// A gitTrace is a directory to which each git process started by the test reports.
type gitTrace string

// traceGit traces all git processes from now on. The user's settings tell git not to sync. Open a
// repository after this call: it reads the settings only once.
func traceGit(t *testing.T) gitTrace {
	t.Helper()
	dir, config := t.TempDir(), filepath.Join(t.TempDir(), "config")
	write(t, config, fmt.Sprintf("[core]\n\tfsync = none\n[trace2]\n\teventTarget = %s\n", dir))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	return gitTrace(dir)
}

// of returns the git processes that do starts, including their child processes. It settles r before and
// after, because the git process for transactions reports at its end.
func (g gitTrace) of(t *testing.T, r *repo.Repo, do func()) []gitRun {
	t.Helper()
	pool.Wait(r)
	for _, file := range value[[]string](t)(filepath.Glob(filepath.Join(string(g), "*"))) {
		must(t, os.Remove(file))
	}
	do()
	pool.Wait(r)
	var runs []gitRun
	for _, file := range value[[]string](t)(filepath.Glob(filepath.Join(string(g), "*"))) {
		var run gitRun
		lines := bufio.NewScanner(bytes.NewReader(value[[]byte](t)(os.ReadFile(file))))
		for lines.Scan() {
			var e struct {
				Event, Category, Key, Value string
				Name                        string // since git 2.40, with Count
				Count                       int
				Argv                        []string
			}
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				continue // an event with a value of another type
			}
			switch {
			case e.Event == "start":
				run.argv = e.Argv
			case e.Event == "counter" && e.Category == "fsync" && e.Name == "hardware-flush":
				run.flushes += e.Count
			case e.Event == "counter" && e.Category == "fsync" && e.Name == "writeout-only":
				run.written += e.Count
			case e.Event == "data" && e.Category == "fsync" && e.Key == "fsync/hardware-flush":
				run.flushes += value[int](t)(strconv.Atoi(e.Value))
			case e.Event == "data" && e.Category == "fsync" && e.Key == "fsync/writeout-only":
				run.written += value[int](t)(strconv.Atoi(e.Value))
			}
		}
		runs = append(runs, run)
	}
	return runs
}

// Objects and refs that a record may name are on disk when an operation ends: each git process that writes
// objects writes out their content, and the process that sets the refs flushes the disk.
func TestWritesAreDurable(t *testing.T) {
	trace := traceGit(t)
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	change := func(n int) { write(t, filepath.Join(w.Path, fmt.Sprintf("new%d", n)), fmt.Sprint("content ", n)) }
	held := claim.Claim{Task: "T", Holder: "h", Session: "s"}
	for name, do := range map[string]func(){
		"snapshot": func() { value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "note")) },
		"commit":   func() { commitAll(t, w, "changed") },
		"rescue":   func() { value[string](t)(rescue.Take(ctx, w, "note", false)) },
		"claim":    func() { value[claim.Held](t)(claim.Acquire(ctx, r, held, "")) },
	} {
		t.Run(name, func(t *testing.T) {
			change(len(name) + int(name[0]))                   // different each time
			flushed, not := map[string]int{}, map[string]int{} // by command
			for _, run := range trace.of(t, r, do) {
				command := run.writer()
				if command != "" && (run.flushes > 0 || command != "update-ref" && run.written > 0) {
					flushed[command]++
				} else if command != "" {
					not[command]++
				}
			}
			if flushed["write-tree"] > 0 {
				delete(not, "write-tree") // the same tree again
			}
			if len(not) > 0 || len(flushed) == 0 {
				t.Errorf("flushed: %v, not flushed: %v", flushed, not)
			}
		})
	}
}

// The number of flushes does not depend on the number of objects.
func TestManyObjectsAreFlushedTogether(t *testing.T) {
	trace := traceGit(t)
	r := sample(t)
	w := add(t, r, "T")
	for n := range 200 {
		write(t, filepath.Join(w.Path, fmt.Sprintf("many%d", n)), fmt.Sprint("content ", n))
	}
	flushes, written := 0, 0
	for _, run := range trace.of(t, r, func() { value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", "note")) }) {
		flushes, written = flushes+run.flushes, written+run.written
	}
	if flushes == 0 || flushes > 20 || written < 200 {
		t.Errorf("%d flushes, %d files written", flushes, written)
	}
}
