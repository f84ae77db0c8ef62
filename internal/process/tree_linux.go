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

// treeBelow returns the tree below this process. main is its main process.
func treeBelow(containment Containment, main int) tree {
	switch containment {
	case PIDNamespace:
		return namespaceTree{}
	case ProcessGroup:
		return followFamily(main)
	}
	return subreaperTree{}
}

// namespaceTree is the tree below this process as the init of a PID namespace.
type namespaceTree struct{}

// signal does nothing unless this process is an init: otherwise the call would reach
// all processes of the user.
func (namespaceTree) signal(signal syscall.Signal) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, signal) // ESRCH: no process is left
	}
}

// lingers returns false: an init whose namespace is not empty has children.
func (namespaceTree) lingers() bool { return false }

// subreaperTree is the tree below this process as a subreaper. Listing it may miss short-lived
// processes, but orphans become the subreaper's children, so repeated signalling until no
// child is left reaches all of them.
type subreaperTree struct{}

func (subreaperTree) signal(signal syscall.Signal) {
	self, below := os.Getpid(), childrenOf
	if _, err := os.Stat(childrenPath(self, self)); err != nil {
		below = scan() // a kernel without CONFIG_PROC_CHILDREN
	}
	signalAll(below(self), below, signal)
}

// lingers returns false: orphans become the subreaper's children.
func (subreaperTree) lingers() bool { return false }

// signalAll signals each process and all its descendants. It reads the children before
// it signals the parent, because the children of a dead process are no longer below
// it.
func signalAll(pids []int, below func(int) []int, signal syscall.Signal) {
	for _, pid := range pids {
		children := below(pid)
		_ = syscall.Kill(pid, signal) // ESRCH: it has ended
		signalAll(children, below, signal)
	}
}

func childrenPath(pid, thread int) string {
	return fmt.Sprintf("/proc/%d/task/%d/children", pid, thread)
}

// childrenOf returns the children of all threads of a process.
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

// scan reads the parents of all processes.
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

// exiting reports whether a child of this process is dead or exiting.
func exiting(child int) bool {
	// Its first thread cannot continue: it has been killed, or its files are being closed.
	const killed, isExiting = 1 << (syscall.SIGKILL - 1), 4 // PF_EXITING
	flags, _ := statField(child, 9)                         // 0 if it has ended
	pending, _ := statField(child, 31)
	if flags&isExiting != 0 || pending&killed != 0 {
		return true
	}
	var end unix.Siginfo
	err := unix.Waitid(unix.P_PID, child, &end, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return end.Signo != 0 || errors.Is(err, unix.ECHILD) // reaped
}
