//go:build linux

package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// owner is a coven process that runs own.
type owner struct {
	cmd   *exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
}

func startOwner(t *testing.T, h hostile, containment Containment, user *syscall.Credential, leak string) *owner {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "own", h.dir, leak)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), ContainmentEnv + "=" + containment.String()}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	o := &owner{cmd: cmd, stdin: must(cmd.StdinPipe()), lines: bufio.NewScanner(must(cmd.StdoutPipe()))}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // both fail if the test has already waited for it
		_ = cmd.Wait()
	})
	return o
}

func (o *owner) line(t *testing.T) string {
	t.Helper()
	if !o.lines.Scan() {
		t.Fatalf("the owner says no more: %v", o.lines.Err())
	}
	return o.lines.Text()
}

// kill kills the coven so that it cannot clean up.
func (o *owner) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); err == nil {
		t.Fatal("the owner was not killed")
	}
}

// users returns the ordinary user and, if we are root, root. An ordinary user needs
// a user namespace around the PID namespace.
func users() map[string]*syscall.Credential {
	if os.Geteuid() != 0 {
		return map[string]*syscall.Credential{"self": nil}
	}
	return map[string]*syscall.Credential{"root": nil, "nobody": {Uid: 65534, Gid: 65534}}
}

func TestNothingOfTheTreeSurvives(t *testing.T) {
	ends := map[string]string{
		"exit": "exit code 7", "die": "ended by SIGKILL", "stop": "ended by SIGKILL: stopped", "kill-coven": "",
	}
	for name, user := range users() {
		for _, containment := range []Containment{PIDNamespace, Subreaper} {
			for how, want := range ends {
				t.Run(fmt.Sprintf("%s/%s/%s", name, containment, how), func(t *testing.T) {
					t.Parallel()
					matrix(t, user, containment, how, want)
				})
			}
		}
	}
}

func matrix(t *testing.T, user *syscall.Credential, containment Containment, how, want string) {
	h := newHostile(t)
	o := startOwner(t, h, containment, user, "")
	if got := o.line(t); got != containment.String() {
		t.Fatalf("containment is %s", got)
	}
	h.awaitBeating(t)
	if how == "kill-coven" {
		o.kill(t)
		eventually(t, "the tree of a killed coven stands still", h.still)
	} else {
		must(fmt.Fprintln(o.stdin, how))
		if got := o.line(t); got != want {
			t.Errorf("ended with %q, want %q", got, want)
		}
	}
	h.assertDead(t)
}

// The kernel notifies a namespace's init of coven's death even if another process
// holds the control pipe.
func TestParentDeathSignal(t *testing.T) {
	for name, user := range users() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			o := startOwner(t, h, PIDNamespace, user, "leak")
			var bystander int
			must(fmt.Sscan(o.line(t), &bystander))
			t.Cleanup(func() { _ = syscall.Kill(bystander, syscall.SIGKILL) })
			h.awaitBeating(t)
			o.kill(t)
			eventually(t, "the tree of a killed coven stands still", h.still)
			h.assertDead(t)
			if err := syscall.Kill(bystander, 0); err != nil {
				t.Errorf("the bystander is gone, so this proved nothing: %v", err)
			}
		})
	}
}

// Without a namespace, the program may kill or halt either of the two processes between coven and the
// tree, and the tree still ends.
func TestSubreaperIsGuarded(t *testing.T) {
	attacks := map[string]func(guard, reaper int) error{
		"kill guard":  func(guard, _ int) error { return syscall.Kill(guard, syscall.SIGKILL) },
		"kill reaper": func(_, reaper int) error { return syscall.Kill(reaper, syscall.SIGKILL) },
		"halt reaper": func(_, reaper int) error { return syscall.Kill(reaper, syscall.SIGSTOP) },
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			child := start(t, launcher(t, Subreaper), Spec{Argv: h.argv(), Grace: 200 * time.Millisecond})
			h.awaitBeating(t)
			guard := child.process.Pid
			if err := attack(guard, childrenOf(guard)[0]); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "halt") {
				child.Stop(nil)
			}
			t.Log(wait(t, child))
			h.assertDead(t)
		})
	}
}

// haltReaper kills the guard while its reaper is halted, and returns the reaper,
// which cannot end the tree until it is continued.
func haltReaper(t *testing.T, guard int) int {
	t.Helper()
	reaper := childrenOf(guard)[0]
	for _, pid := range []int{guard, reaper} { // halt the guard first, or it would continue the reaper
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "every thread is halted", func() bool { return halted(pid) })
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return reaper
}

func halted(pid int) bool {
	threads := must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)))
	for _, thread := range threads {
		if data, err := os.ReadFile(thread); err != nil || !strings.Contains(string(data), ") T ") {
			return false
		}
	}
	return len(threads) > 0
}

// Neither Wait nor a command's release returns before the tree is gone, even if the process that
// coven started has ended.
func TestWaitingIsForTheTree(t *testing.T) {
	l := launcher(t, Subreaper)
	h := newHostile(t)
	child := start(t, l, Spec{Argv: h.argv()})
	h.awaitBeating(t)
	wakeLate(t, haltReaper(t, child.process.Pid), func() { child.Wait() })
	h.assertDead(t)

	h = newHostile(t)
	cmd, release := contain(t, l, h.argv()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.awaitBeating(t)
	reaper := haltReaper(t, cmd.Process.Pid)
	if err := cmd.Wait(); err == nil {
		t.Error("a killed command succeeded")
	}
	wakeLate(t, reaper, release)
	h.assertDead(t)
}

// wakeLate checks that wait blocks until the reaper is continued.
func wakeLate(t *testing.T, reaper int, wait func()) {
	t.Helper()
	waited := make(chan struct{})
	go func() { wait(); close(waited) }()
	select {
	case <-waited:
		t.Error("did not wait for the tree")
	case <-time.After(300 * time.Millisecond): // long enough to notice an early return
	}
	if err := syscall.Kill(reaper, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	<-waited
}

// If the kernel does not list a process's children, all processes are scanned.
func TestScanFindsTheTree(t *testing.T) {
	h := newHostile(t)
	child := start(t, launcher(t, Subreaper), Spec{Argv: h.argv(), Grace: brief})
	h.awaitBeating(t)
	eventually(t, "every sleeper is found", func() bool {
		found := map[int]bool{}
		below := scan()
		var visit func(pid int)
		visit = func(pid int) {
			for _, next := range below(pid) {
				found[next] = true
				visit(next)
			}
		}
		visit(child.process.Pid)
		for _, pid := range h.processes(t) {
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(line), "sleeper.sh") && !found[pid] {
				return false
			}
		}
		return len(found) > 4
	})
}
