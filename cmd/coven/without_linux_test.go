package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// without is the program "without": without landlock|namespaces COMMAND... runs a command on a simulated
// kernel without the feature, like old kernels and those of containers.
func without() {
	runtime.LockOSThread() // the filter belongs to the thread that executes the command
	filters := map[string][]unix.SockFilter{
		"landlock":   refuseCall(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS),
		"namespaces": append(append(refuseFlags(unix.SYS_CLONE, unix.CLONE_NEWPID|unix.CLONE_NEWUSER), refuseCall(unix.SYS_CLONE3, unix.ENOSYS)...), refuseCall(unix.SYS_UNSHARE, unix.EPERM)...),
	}
	filter, ok := filters[os.Args[1]]
	if !ok {
		die(fmt.Errorf("without %s: unknown", os.Args[1]))
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		die(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		die(err)
	}
	path, err := exec.LookPath(os.Args[2])
	if err != nil {
		die(err)
	}
	die(syscall.Exec(path, os.Args[2:], os.Environ()))
}

func die(err error) {
	fmt.Fprintln(os.Stderr, "without:", err)
	os.Exit(125)
}

// Offsets of a system call's number and of the low half of its first argument.
const (
	callNumber = 0
	firstArg   = 16
)

// refuseCall makes a system call fail.
func refuseCall(number uint32, errno syscall.Errno) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
	}
}

// refuseFlags makes a system call fail if its first argument has one of the flags.
func refuseFlags(number, flags uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArg},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: flags, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
}
