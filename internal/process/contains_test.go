//go:build linux

package process

import (
	"os"
	"os/exec"
	"testing"
)

func TestContains(t *testing.T) {
	adopted(t, func(t *testing.T, l *Launcher) {
		h := newHostile(t)
		child := start(t, l, Spec{Argv: h.argv(), Grace: brief})
		other := start(t, l, Spec{Argv: []string{"/bin/sleep", "1000"}})
		outside := exec.Command("/bin/sleep", "1000")
		if err := outside.Start(); err != nil {
			t.Fatal(err)
		}
		h.awaitBeating(t)
		members := 0
		eventually(t, "members are seen", func() bool {
			for _, pid := range h.processes(t) {
				if child.Contains(pid) {
					members++
				}
				if other.Contains(pid) {
					t.Errorf("process %d is in the wrong tree", pid)
				}
			}
			return members >= 5 // main and the sleepers; hoppers may be gone
		})
		for _, pid := range []int{outside.Process.Pid, os.Getpid(), os.Getppid(), 1, 0, -1, 1 << 30} {
			if child.Contains(pid) {
				t.Errorf("process %d is no member", pid)
			}
		}
		shim := child.process.Pid
		child.Stop(nil)
		wait(t, child)
		if child.Contains(shim) {
			t.Error("a tree that is gone has a member")
		}
		_ = outside.Process.Kill()
		_ = outside.Wait()
	})
}

// A namespace created inside the tree belongs to the tree.
func TestContainsNested(t *testing.T) {
	l := launcher(t, PIDNamespace)
	h := newHostile(t)
	child := start(t, l, Spec{Argv: []string{os.Args[0], "own", h.dir, ""}, Grace: brief, Env: []string{
		"PATH=" + os.Getenv("PATH"), ContainmentEnv + "=" + PIDNamespace.String(),
	}})
	if got := readLine(t, child.Output()); got != PIDNamespace.String() {
		t.Fatalf("no namespace in a namespace: %s", got)
	}
	sibling := start(t, l, Spec{Argv: []string{"/bin/sleep", "1000"}})
	nested := false
	for _, pid := range h.processes(t) {
		namespace := namespaceOf(pid)
		if namespace == (inode{}) {
			continue // a hopper that has ended
		}
		inside := child.Contains(pid)
		if namespaceOf(pid) == namespace && !inside || sibling.Contains(pid) {
			t.Errorf("process %d: inside is %t", pid, inside)
		}
		nested = nested || namespace != child.namespace
	}
	if !nested {
		t.Error("no nested namespace was looked at")
	}
}
