package process

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastSignal is the highest signal number of Linux.
const lastSignal = 64

// descriptorsDir lists this process's open descriptors.
const descriptorsDir = "/proc/self/fd"

// restrict puts limits on this thread, and with the exec on the program, that
// can never be taken off again.
//
// This is the place for Landlock: it is applied here, last before the program
// is looked up and run, and by an order that names what may be written.
func restrict(o order) error {
	if o.Containment == PIDNamespace || os.Geteuid() == 0 {
		return nil
	}
	// A reaper without privileges cannot kill what a set-uid program became.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}

// resetSignals unblocks every signal and gives each its default action: what
// coven was started with, by nohup for instance, is not the program's.
func resetSignals() error {
	var action [64]byte // a zero struct sigaction is the default action, on every architecture
	for signal := uintptr(1); signal <= lastSignal; signal++ {
		if signal == uintptr(syscall.SIGKILL) || signal == uintptr(syscall.SIGSTOP) {
			continue
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&action)), 0, lastSignal/8, 0, 0)
		if errno != 0 {
			return fmt.Errorf("reset signal %d: %w", signal, errno)
		}
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	return nil
}
