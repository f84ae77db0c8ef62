package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/jsonline"
)

// 8 goroutines and 4 processes claim 24 tasks. Each task is claimed exactly once.
func TestClaimsAreDistinct(t *testing.T) {
	const tasks = 24
	var lines strings.Builder
	for i := range tasks {
		fmt.Fprintf(&lines, `{"id":"t-%d","title":"T"}`+"\n", i)
	}
	f := tracker(t, lines.String())
	var mu sync.Mutex
	var claimed []string
	report := func(who string, ids []string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("%s: %v", who, err)
		}
		claimed = append(claimed, ids...)
	}
	var all sync.WaitGroup
	for i := range 4 {
		who := fmt.Sprintf("process %d", i)
		cmd := worker(t, "claim", f, who)
		all.Go(func() {
			out, err := cmd.Output()
			report(who, strings.Fields(string(out)), err)
		})
	}
	for i := range 8 {
		who := fmt.Sprintf("goroutine %d", i)
		all.Go(func() {
			ids, err := drain(t.Context(), f, who)
			report(who, ids, err)
		})
	}
	all.Wait()
	slices.Sort(claimed)
	if len(claimed) != tasks || len(slices.Compact(slices.Clone(claimed))) != tasks {
		t.Errorf("%d claims: %v", len(claimed), claimed)
	}
}

// Two repositories that share a file through BEADS_DIR have different lock files.
func TestOtherLockDirectory(t *testing.T) {
	f := tracker(t, "")
	other := OpenFile(f.path, filepath.Join(t.TempDir(), "locks"))
	var all sync.WaitGroup
	for _, one := range []*File{f, other, f, other} {
		all.Go(func() {
			for range 10 {
				if _, err := one.Add(t.Context(), New{Title: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := f.List(t.Context()); err != nil || len(got) != 40 {
		t.Errorf("%d tasks, %v", len(got), err)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	f := tracker(t, odd+"\n")
	unlock, err := f.acquire()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Claim(ctx, "t-1", "me")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
	if _, err := f.Claim(t.Context(), "t-1", "me"); err != nil {
		t.Errorf("the lock was kept: %v", err)
	}
}

// A program that ignores the lock writes between reading and renaming.
func TestForeignWriteIsKept(t *testing.T) {
	f := tracker(t, odd+"\n")
	foreign := odd + "\n" + `{"id":"t-2","title":"from an editor"}` + "\n"
	first := true
	err := f.update(t.Context(), func(d *document) error {
		if first {
			first = false
			if err := os.WriteFile(f.path, []byte(foreign), 0o644); err != nil {
				return err
			}
		}
		return d.patch("t-1", []jsonline.Edit{{Name: "title", Value: []byte(`"new"`)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(foreign, `"\u00e9 <b> & \"q\""`, `"new"`, 1); content(t, f) != want {
		t.Errorf("got\n%s\nwant\n%s", content(t, f), want)
	}
	err = f.update(t.Context(), func(d *document) error {
		foreign += "\n"
		return errors.Join(os.WriteFile(f.path, []byte(foreign), 0o644), d.patch("t-1", []jsonline.Edit{{Name: "title", Value: []byte(`"x"`)}}))
	})
	if !errors.Is(err, errRaced) || content(t, f) != foreign {
		t.Errorf("got %v", err)
	}
}

func TestKilledAtTheRename(t *testing.T) {
	for point, c := range map[string]struct {
		claimed   bool
		leftovers int
	}{
		"task.before.rename": {false, 1},
		"task.after.rename":  {true, 0},
	} {
		t.Run(point, func(t *testing.T) {
			f := tracker(t, odd+"\n")
			cmd := worker(t, "one", f, "first", failpoint.Env+"="+point)
			killed(t, cmd.Run())
			if got := leftovers(t, f); got != c.leftovers {
				t.Errorf("%d leftovers", got)
			}
			was, err := f.Get(t.Context(), "t-1")
			if err != nil {
				t.Fatal(err)
			}
			if is := was.Assignee == "first"; is != c.claimed || !is && content(t, f) != odd+"\n" {
				t.Errorf("claimed %v: %s", is, content(t, f))
			}
			if _, err := f.Claim(t.Context(), "t-1", "first"); err != nil {
				t.Fatal(err)
			}
			if got := leftovers(t, f); got != 0 {
				t.Errorf("%d leftovers after the next write", got)
			}
		})
	}
}

func killed(t *testing.T, err error) {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("not killed: %v", err)
	}
}

func leftovers(t *testing.T, f *File) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - 1
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	f := tracker(t, odd+"\n")
	dir := filepath.Dir(f.path)
	for _, name := range []string{".issues.jsonl", ".issues.jsonl.swp", ".issues.jsonl12x", "issues.jsonl1", ".gitignore", ".issues.jsonl123"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Claim(t.Context(), "t-1", "me"); err != nil {
		t.Fatal(err)
	}
	if got := leftovers(t, f); got != 5 || exists(filepath.Join(dir, ".issues.jsonl123")) {
		t.Errorf("%d files are left", got)
	}
}

// A change that a writer has reported is in the file, whenever the writer is killed.
func TestKilledAnywhere(t *testing.T) {
	f := tracker(t, odd+"\n")
	reported := map[string]bool{}
	for round := range 8 {
		cmd := worker(t, "add", f, "w")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range round + 1 {
			if !lines.Scan() {
				t.Fatal("the writer stopped by itself")
			}
			reported[lines.Text()] = true
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			reported[lines.Text()] = true
		}
		killed(t, cmd.Wait())
	}
	for id := range reported {
		if _, err := f.Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if !strings.HasPrefix(content(t, f), odd+"\n") {
		t.Error("the first line changed")
	}
}
