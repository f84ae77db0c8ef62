//go:build linux

package process

import (
	"errors"
	"os"
	"runtime"
	"testing"
)

func countDir(t *testing.T, path string) int {
	t.Helper()
	return len(must(os.ReadDir(path)))
}

// TestNothingLeaks is not parallel because it counts the open files of the whole process.
func TestNothingLeaks(t *testing.T) {
	for _, containment := range containments() {
		t.Run(containment.String(), func(t *testing.T) {
			l := launcher(t, containment)
			children(t, l, 10) // opens the files that the runtime keeps open
			files, threads, routines := countDir(t, "/proc/self/fd"), countDir(t, "/proc/self/task"), runtime.NumGoroutine()
			children(t, l, 50)
			eventually(t, "goroutines ended", func() bool { return runtime.NumGoroutine() <= routines })
			if now := countDir(t, "/proc/self/fd"); now > files {
				t.Errorf("%d descriptors, had %d", now, files)
			}
			if now := countDir(t, "/proc/self/task"); now > threads+5 {
				t.Errorf("%d threads, had %d", now, threads)
			}
		})
	}
}

// children runs n children that end in all possible ways.
func children(t *testing.T, l *Launcher, n int) {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH")}
	for i := range n {
		switch i % 6 {
		case 0:
			if _, _, err := l.Run(t.Context(), Spec{Argv: shell("echo x"), Env: env}); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := l.Start(t.Context(), Spec{Argv: []string{"no-such-program"}, Env: env}); !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
		case 2:
			child := must(l.Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}, Env: env, Timeout: limit, Idle: limit}))
			child.Stop(nil)
			readAll(t, child.Output())
			wait(t, child)
		case 3:
			child := must(l.Start(t.Context(), Spec{Argv: []string{"yes"}, Env: env}))
			if err := child.Close(); err != nil {
				t.Fatal(err)
			}
		case 4:
			cmd, release := contain(t, l, "/bin/true")
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			release()
		case 5: // released instead of started
			_, release := contain(t, l, "/bin/true")
			release()
		}
	}
}

// Concurrent children cost one thread each.
func TestThreadsOfManyChildren(t *testing.T) {
	const n = 30
	l := launcher(t, PIDNamespace)
	before := countDir(t, "/proc/self/task")
	for range n {
		child := start(t, l, Spec{Argv: []string{"/bin/sleep", "1000"}})
		go func() { _, _ = child.Output().Read(make([]byte, 1)) }()
	}
	if now := countDir(t, "/proc/self/task"); now > before+n+10 {
		t.Errorf("%d threads for %d children", now-before, n)
	}
}
