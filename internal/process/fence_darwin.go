package process

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// lastSignal is the highest signal number of macOS.
const lastSignal = 31

// descriptorsDir lists this process's open descriptors.
const descriptorsDir = "/dev/fd"

// restrict does nothing: on macOS, the program is started in a profile of sandbox-exec.
func restrict(order) error { return nil }

// ignoreReserved does nothing: package signal can ignore all signals of macOS.
func ignoreReserved() {}

// resetSignals unblocks all signals and resets them to their default actions, because
// coven may have inherited others, for example from nohup.
//
// Handling a signal resets it: exec resets handled signals to the default action, and
// keeps only ignored ones.
func resetSignals() error {
	signal.Notify(make(chan os.Signal, 1))
	const setMask = 3 // SIG_SETMASK
	var none uint32   // a sigset_t
	_, _, errno := syscall.RawSyscall(syscall.SYS___PTHREAD_SIGMASK, setMask, uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 {
		return fmt.Errorf("unblock signals: %w", errno)
	}
	return nil
}
