package process

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	// ErrTimeout is the cause of an Exit whose child ran longer than Spec.Timeout.
	ErrTimeout = errors.New("ran longer than its timeout")
	// ErrIdle is the cause of an Exit whose child printed nothing for longer than
	// Spec.Idle.
	ErrIdle = errors.New("no output for longer than its idle timeout")
	// ErrStopped is the cause of an Exit whose child was stopped without a reason.
	ErrStopped = errors.New("stopped")
	// ErrNotFound is returned by Start if a program without a slash in its name is in no
	// directory of its PATH. It is an fs.ErrNotExist, as is the error for a missing path.
	ErrNotFound error = notFoundError{}
	// ErrLauncher means that the launcher failed, not the program that it ran.
	ErrLauncher = errors.New("coven's process launcher failed")
)

// notFoundError is the type of ErrNotFound.
type notFoundError struct{}

func (notFoundError) Error() string { return "not found on PATH" }

// Is makes it an fs.ErrNotExist without wrapping it, which would lengthen the text.
func (notFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// Exit describes how a child ended.
type Exit struct {
	// Code is the exit code, or 128 + Signal if a signal ended the program.
	Code int
	// Signal is the signal that killed the program, or 0.
	Signal syscall.Signal
	// Cause is the reason why coven stopped the child: ErrTimeout, ErrIdle, the context's
	// cause, or the argument of Stop. It is nil if the program ended by itself, even if
	// Stop was called immediately after.
	Cause error
	// Err is an ErrLauncher if it is not known how the program ended.
	Err error
}

// OK reports whether the program ended by itself with exit code 0.
func (e Exit) OK() bool {
	return e.Code == 0 && e.Signal == 0 && e.Cause == nil && e.Err == nil
}

// String describes how the child ended: "exit code 3", "ended by SIGTERM: ran longer
// than its timeout".
func (e Exit) String() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	text := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != 0 {
		text = "ended by " + signalName(e.Signal)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func signalName(signal syscall.Signal) string {
	if name := unix.SignalName(signal); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(signal))
}

func killed(signal syscall.Signal) Exit {
	return Exit{Code: 128 + int(signal), Signal: signal}
}
