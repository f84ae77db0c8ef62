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

// restrict sets irrevocable limits on this thread, which the program inherits by exec.
//
// Landlock belongs here, immediately before the program is looked up and run; the
// order would name the writable paths.
func restrict(o order) error {
	if o.Containment == PIDNamespace || os.Geteuid() == 0 {
		return nil
	}
	// A reaper without privileges cannot kill a set-uid program.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}

// resetSignals unblocks all signals and resets them to their default actions, because
// coven may have inherited others, for example from nohup.
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
