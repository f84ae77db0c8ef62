package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakebd"
)

// workerEnv makes the test binary a worker: claim, add or one.
const workerEnv = "COVEN_TASK_TEST_WORKER"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == BD {
		os.Exit(fakebd.Main(os.Args[1:]))
	}
	if os.Getenv(workerEnv) == "drain bd" {
		os.Exit(drainBD())
	}
	if kind := os.Getenv(workerEnv); kind != "" {
		if err := work(kind, OpenFile(os.Args[1], os.Args[2]), os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work runs a worker process. It prints the ID of every task that it changed.
func work(kind string, f *File, actor string) error {
	ctx := context.Background()
	switch kind {
	case "claim":
		ids, err := drain(ctx, f, actor)
		for _, id := range ids {
			fmt.Println(id)
		}
		return err
	case "one":
		t, err := f.Claim(ctx, "t-1", actor)
		fmt.Println(t.ID)
		return err
	case "add":
		for {
			t, err := f.Add(ctx, New{Title: actor, Priority: 2, Description: strings.Repeat("d", 2000)})
			if err != nil {
				return err
			}
			fmt.Println(t.ID)
		}
	}
	return errors.New("no such worker: " + kind)
}

// drain claims ready tasks until there are none left.
func drain(ctx context.Context, f Tracker, actor string) ([]string, error) {
	var ids []string
	for {
		ready, err := f.Ready(ctx)
		if err != nil || len(ready) == 0 {
			return ids, err
		}
		_, err = f.Claim(ctx, ready[0].ID, actor)
		switch {
		case err == nil:
			ids = append(ids, ready[0].ID)
		case !errors.Is(err, ErrClaimed):
			return ids, err
		}
	}
}

// drainBD is the worker that claims the ready tasks of a bd. Its arguments are the program, the directory,
// and the actor.
func drainBD() int {
	c := newCLI(BD, os.Args[1], os.Args[2], filepath.Join(os.Args[2], directory), os.Environ())
	ids, err := drain(context.Background(), c, os.Args[3])
	for _, id := range ids {
		fmt.Println(id)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func workerIn(t *testing.T, s site, actor string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, s.program, s.dir, actor)
	cmd.Env = append(s.env[:len(s.env):len(s.env)], workerEnv+"=drain bd")
	cmd.Stderr = os.Stderr
	return cmd
}

func worker(t *testing.T, kind string, f *File, actor string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, f.path, f.lockDir, actor)
	cmd.Env = append([]string{workerEnv + "=" + kind, "HOME=" + t.TempDir()}, env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// at is the time of all changes in tests that compare bytes.
var at = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

const atText = `"2026-12-01T10:00:00Z"`

// tracker creates a file with the given content in a new directory.
func tracker(t *testing.T, content string) *File {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "repo", directory, defaultFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	f := OpenFile(path, filepath.Join(dir, "locks"))
	f.now = func() time.Time { return at }
	return f
}

func content(t *testing.T, f *File) string {
	t.Helper()
	data, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func ids(tasks []Task) string {
	var all []string
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	return strings.Join(all, " ")
}
