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

// restrict sets irrevocable limits on this process, which the program inherits by exec.
func restrict(o order) error {
	if o.Limits != nil {
		return o.Limits.enforce() // forbids new privileges, too
	}
	if o.Containment == PIDNamespace || os.Geteuid() == 0 {
		return nil
	}
	// A reaper without privileges cannot kill a set-uid program.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}

// ignoreReserved ignores the signals that package signal cannot ignore: the Go runtime
// leaves them to a C library. With their default action they can end the init of a PID
// namespace: the kernel protects an init from such a signal unless its main thread blocks
// the signal and another does not, as happens while the Go runtime starts a thread.
func ignoreReserved() {
	action := [64]byte{1}                      // a struct sigaction with the handler SIG_IGN; amd64 and arm64 are little-endian
	for _, signal := range []uintptr{32, 34} { // 33 has a handler of the runtime
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&action)), 0, lastSignal/8, 0, 0) // harmless if it fails
	}
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
