package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/snapshot"
)

// Snapshot 200 of a session, and a revert after it, start no more git processes than the first ones.
func TestManySnapshots(t *testing.T) {
	oneAtATime(t)
	r := sample(t)
	ctx := context.Background()
	w := add(t, r, "T")
	counted := countGit(t)
	take := func(n int) int {
		t.Helper()
		write(t, filepath.Join(w.Path, "file0.txt"), fmt.Sprint("change ", n))
		processes := counted()
		equal(t, "number", value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "")).N, n)
		return counted() - processes
	}
	revert := func(to int) int {
		t.Helper()
		processes := counted()
		value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", to))
		processes = counted() - processes
		equal(t, "reverted", read(t, filepath.Join(w.Path, "file0.txt")), fmt.Sprint("change ", to))
		return processes
	}
	early := 0 // git may have to check a recently written file twice
	for n := 1; n <= 10; n++ {
		early = max(early, take(n))
	}
	reverted := revert(2)
	for n := 11; n < 200; n++ {
		take(n)
	}
	if late := take(200); early == 0 || late > early {
		t.Errorf("snapshot 200 took %d git processes, early ones %d", late, early)
	}
	if late := revert(2); late == 0 || late > reverted {
		t.Errorf("a revert with 200 snapshots took %d git processes, one with 10 %d", late, reverted)
	}
}

// countGit returns a function that returns the number of git processes started since.
func countGit(t *testing.T) func() int {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	err := errors.Join(os.WriteFile(calls, []byte("0\n"), 0o644), os.WriteFile(filepath.Join(dir, "git"), []byte(read(t, "testdata/failinggit")), 0o755))
	must(t, err)
	t.Setenv("LOST", dir)
	t.Setenv("LOST_GIT", value[string](t)(exec.LookPath("git")))
	t.Setenv("LOST_AT", strconv.Itoa(1<<30))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		return value[int](t)(strconv.Atoi(strings.TrimSpace(read(t, calls))))
	}
}
