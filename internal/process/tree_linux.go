package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// treeBelow is the tree whose main process is that one.
func treeBelow(containment Containment, main int) tree {
	switch containment {
	case PIDNamespace:
		return everyone{}
	case ProcessGroup:
		return followFamily(main)
	}
	return descendants{}
}

// everyone is the tree below this process as the init of a PID namespace.
type everyone struct{}

// signal does nothing in any other process, where the same call would reach all
// that the user runs.
func (everyone) signal(signal syscall.Signal) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, signal) // ESRCH: nobody is left
	}
}

// lingers is false: an init whose namespace is not empty has children.
func (everyone) lingers() bool { return false }

// descendants is the tree below this process as a subreaper. A listing of it misses processes
// that come and go; orphans however become the subreaper's own children, and
// signalling again and again until it has none left reaches every one.
type descendants struct{}

func (descendants) signal(signal syscall.Signal) {
	self, below := os.Getpid(), childrenOf
	if _, err := os.Stat(childrenPath(self, self)); err != nil {
		below = scan() // a kernel without CONFIG_PROC_CHILDREN
	}
	signalAll(below(self), below, signal)
}

// lingers is false: orphans become the subreaper's children.
func (descendants) lingers() bool { return false }

// signalAll signals each process, and all below it, as soon as it is seen. Its
// children are read before, since those of a dead one are no longer below it.
func signalAll(pids []int, below func(int) []int, signal syscall.Signal) {
	for _, pid := range pids {
		children := below(pid)
		_ = syscall.Kill(pid, signal) // ESRCH: it is gone
		signalAll(children, below, signal)
	}
}

func childrenPath(pid, thread int) string {
	return fmt.Sprintf("/proc/%d/task/%d/children", pid, thread)
}

// childrenOf reads a process's children, which may belong to any thread.
func childrenOf(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var children []int
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(childrenPath(pid, id))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// scan reads the parent of every process there is.
func scan() func(int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return func(int) []int { return nil }
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(pid); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return func(pid int) []int { return children[pid] }
}

// exiting reports whether a child of this process is dead or about to be.
func exiting(child int) bool {
	// Its first thread has no way back: it is told to go, or its files are being closed.
	const killed, isExiting = 1 << (syscall.SIGKILL - 1), 4 // PF_EXITING
	flags, _ := statField(child, 9)                         // 0 when it is gone
	pending, _ := statField(child, 31)
	if flags&isExiting != 0 || pending&killed != 0 {
		return true
	}
	var end unix.Siginfo
	err := unix.Waitid(unix.P_PID, child, &end, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return end.Signo != 0 || errors.Is(err, unix.ECHILD) // reaped
}
