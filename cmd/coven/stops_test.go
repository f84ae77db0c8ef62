package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
)

// coven responds to an interrupt within a second, regardless of its state.
func TestInterruptIsAnsweredSoon(t *testing.T) {
	if limit := cli.StopTicks * cli.StopTick; limit >= time.Second {
		t.Errorf("it takes %s", limit)
	}
}

// cmdStops implements stops FILE COMMAND: it interrupts a command after it has opened FILE, a lock that
// another process holds, and checks that it exits with 130. With pipe instead of FILE, the output is not
// read, and the command is interrupted when it blocks on writing. With git, it is interrupted while its git
// does not end. coven kills such a git after a second; in this case the command starts again.
func cmdStops(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: stops FILE|pipe|git COMMAND")
	}
	program, err := lookPath(args[1], ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), program, args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	read, write, err := os.Pipe()
	ts.Check(err)
	defer read.Close() //nolint:errcheck // nothing of it matters
	stderr := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = write, stderr
	ts.Check(cmd.Start())
	_ = write.Close() // the command has it
	stuck := func() bool { return hasOpen(cmd.Process.Pid, ts.MkAbs(args[0])) }
	if args[0] == "pipe" {
		before := 0
		stuck = func() bool { // a full pipe may have room for less than a line
			n, err := unix.IoctlGetInt(int(read.Fd()), bytesWaiting)
			full := n > 1<<15 && n == before
			before = n
			return err == nil && full
		}
	}
	if args[0] == "git" {
		looks := map[int]int{}
		stuck = func() bool { // the same git, seen many times
			for _, p := range processes(ts.MkAbs(".")) {
				if filepath.Base(p.argv[0]) == "git" {
					looks[p.pid]++
				}
				if looks[p.pid] > 10 {
					return true
				}
			}
			return false
		}
	}
	for deadline := time.Now().Add(patience); !stuck(); pause() {
		if args[0] == "git" && isZombie(cmd.Process.Pid) && time.Now().Before(deadline) {
			if _ = wait(cmd); !strings.Contains(stderr.String(), "a pipe is in the place of a file") {
				ts.Fatalf("it ended before it came to git:\n%s", stderr)
			}
			cmdStops(ts, neg, args)
			return
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			ts.Fatalf("it never came to %s: %v\n%s", args[0], wait(cmd), stderr)
		}
	}
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	err = wait(cmd)
	if code := cmd.ProcessState.ExitCode(); code != exit.Interrupted {
		ts.Fatalf("it ended with %d (%v):\n%s", code, err, stderr)
	}
}

// isZombie reports whether a child has ended.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, file string) bool {
	open, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	if err != nil {
		return false
	}
	for _, fd := range open {
		if at, err := os.Readlink(fd); err == nil && at == file {
			return true
		}
	}
	return false
}

// cmdHolds implements holds FILE: it holds the lock on a file or directory until the end of the story.
func cmdHolds(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "holds FILE")
	name := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
	f, err := os.OpenFile(name, os.O_RDONLY, 0)
	if os.IsNotExist(err) {
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	}
	ts.Check(err)
	ts.Defer(func() { _ = f.Close() })
	ts.Check(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}
