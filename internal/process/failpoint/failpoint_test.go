package failpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/process/failpoint"
)

// TestMain is also the process that is killed: it reaches the points in its
// arguments, and writes synced and unsynced bytes to the file "tail".
func TestMain(m *testing.M) {
	if os.Getenv("CRASH_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	f, err := os.Create("tail")
	if err != nil {
		panic(err)
	}
	if _, err := f.WriteString("on disk\nnot yet\n"); err != nil {
		panic(err)
	}
	for _, point := range os.Args[1:] {
		failpoint.Point(point)
		failpoint.Unsynced("written."+point, f, int64(len("on disk\n")))
	}
}

func TestPoint(t *testing.T) {
	for _, c := range []struct {
		kill  string
		died  bool
		trace string
		tail  string
	}{
		{"", false, "a\nwritten.a\nb\nwritten.b\na\nwritten.a\n", "on disk\nnot yet\n"},
		{"c", false, "a\nwritten.a\nb\nwritten.b\na\nwritten.a\n", "on disk\nnot yet\n"},
		{"a:3", false, "a\nwritten.a\nb\nwritten.b\na\nwritten.a\n", "on disk\nnot yet\n"},
		{"a", true, "a\n", "on disk\nnot yet\n"},
		{"a:2", true, "a\nwritten.a\nb\nwritten.b\na\n", "on disk\nnot yet\n"},
		{"a:2:lost", true, "a\nwritten.a\nb\nwritten.b\na\n", "on disk\nnot yet\n"},
		{"written.b", true, "a\nwritten.a\nb\nwritten.b\n", "on disk\nnot yet\n"},
		{"written.b:1:lost", true, "a\nwritten.a\nb\nwritten.b\n", "on disk\n"},
		{"written.b:1:torn", true, "a\nwritten.a\nb\nwritten.b\n", "on disk\nnot "},
	} {
		t.Run(c.kill, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := child(t, dir, c.kill)
			if died := signal(cmd.Run()); (died == syscall.SIGKILL) != c.died {
				t.Errorf("signal %v", died)
			}
			for file, want := range map[string]string{"trace": c.trace, "tail": c.tail} {
				if is, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(is) != want {
					t.Errorf("%s: %q, %v; want %q", file, is, err, want)
				}
			}
		})
	}
}

func TestStop(t *testing.T) {
	cmd := child(t, t.TempDir(), "b:1:stop")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPoint measures a point that is not selected.
func BenchmarkPoint(b *testing.B) {
	for b.Loop() {
		failpoint.Point("nothing")
	}
}

func child(t *testing.T, dir, kill string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "a", "b", "a")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CRASH_TEST_CHILD=1", failpoint.Env+"="+kill, failpoint.TraceEnv+"=trace")
	return cmd
}

// signal returns the signal that killed a process, or 0.
func signal(err error) syscall.Signal {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return 0
	}
	return exit.Sys().(syscall.WaitStatus).Signal()
}
