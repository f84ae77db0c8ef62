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

// restrict does nothing: there is no fence on macOS.
func restrict(order) error { return nil }

// resetSignals unblocks every signal and gives each its default action: what
// coven was started with, by nohup for instance, is not the program's.
//
// Handling a signal resets it: an exec gives what is handled its default action,
// and keeps only what is ignored.
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
