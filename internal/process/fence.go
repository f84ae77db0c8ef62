package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenceFd takes the reason why the program could not be started; the exec that
// starts it closes it. The order is on orderFd.
const fenceFd = 4

// lastSignal is the highest signal number of Linux.
const lastSignal = 64

// fence turns this process into the ordered program. It returns only when that
// failed.
func fence() int {
	unix.CloseOnExec(fenceFd)
	err := becomeProgram(os.NewFile(orderFd, "order"))
	_ = json.NewEncoder(os.NewFile(fenceFd, "fence")).Encode(newFailure(err)) // the shim may be dead
	return 127
}

func becomeProgram(memory *os.File) error {
	o, err := readOrder(memory)
	if err != nil {
		return err
	}
	if err := closeOthers(); err != nil {
		return err
	}
	if o.Dir != "" {
		if err := os.Chdir(string(o.Dir)); err != nil {
			return err
		}
	}
	if err := restrict(o); err != nil {
		return err
	}
	env := plain(o.Env)
	if o.Inherit {
		env = os.Environ()
	}
	path, err := lookPath(string(o.Argv[0]), env)
	if err != nil {
		return err
	}
	if err := resetSignals(); err != nil {
		return err
	}
	return execError(path, syscall.Exec(path, plain(o.Argv), env))
}

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

// closeOthers makes the exec close every descriptor but the standard ones,
// those too that coven itself was started with.
func closeOthers() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
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

// lookPath finds a program as execvp would, in the absolute directories only: a
// relative one would be the agent's to fill.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	found, reason := name, ErrNotFound
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if !filepath.IsAbs(dir) || err != nil || info.IsDir() {
			continue
		}
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err == nil {
			return path, nil
		}
		found, reason = path, syscall.EACCES
	}
	return "", &fs.PathError{Op: "exec", Path: found, Err: reason}
}

// lookup returns a variable's first value, as getenv does.
func lookup(env []string, name string) string {
	for _, entry := range env {
		if key, value, found := strings.Cut(entry, "="); found && key == name {
			return value
		}
	}
	return ""
}

// execError names the program that did not run. A program that is there and yet
// "does not exist" lacks its interpreter.
func execError(path string, err error) error {
	if _, missing := os.Stat(path); errors.Is(err, fs.ErrNotExist) && missing == nil {
		path += " (its interpreter)"
	}
	return &fs.PathError{Op: "exec", Path: path, Err: err}
}
