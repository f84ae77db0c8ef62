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

	"golang.org/x/sys/unix"
)

// fenceFd receives the reason if the program cannot be started; a successful exec
// closes it. The order is on orderFd.
const fenceFd = 4

// offerFd is for reads.Offer.
const offerFd = 6

// gateFd yields a byte when the shim has reported this process, and its end if the shim is dead.
const gateFd = 5

// fence replaces this process by the program in the order. It returns only on failure.
func fence() {
	unix.CloseOnExec(fenceFd)
	unix.CloseOnExec(gateFd)
	if n, _ := os.NewFile(gateFd, "gate").Read([]byte{0}); n == 0 {
		return // otherwise coven might never learn about the program
	}
	err := becomeProgram(os.NewFile(orderFd, "order"))
	_ = json.NewEncoder(os.NewFile(fenceFd, "fence")).Encode(newFailure(err)) // the shim may be dead
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
	if o.Limits != nil && o.Limits.Reads != nil {
		_ = o.Limits.Reads.Offer(offerFd) // if the kernel refuses, there is no list
	}
	program, argv := o.Limits.within(path, plain(o.Argv))
	return execError(path, syscall.Exec(program, argv, env))
}

// closeOthers marks all descriptors except the standard ones close-on-exec, including
// those that coven inherited.
func closeOthers() error {
	entries, err := os.ReadDir(descriptorsDir)
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

// lookPath finds a program like execvp, but only in absolute directories: an agent
// could write to relative ones.
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

// execError names the program that did not run. If an existing program "does not
// exist", its interpreter is missing.
func execError(path string, err error) error {
	if _, missing := os.Stat(path); errors.Is(err, fs.ErrNotExist) && missing == nil {
		path += " (its interpreter)"
	}
	return &fs.PathError{Op: "exec", Path: path, Err: err}
}
