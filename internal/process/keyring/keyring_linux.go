package keyring

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refuse makes the system calls of the kernel's keyrings fail as on a kernel without them. Programs
// of a session share its keyring, and those of a user share the user's; both may contain tickets and keys.
// New privileges must already be forbidden.
func Refuse() error {
	instructions := filter()
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	if err != nil {
		return fmt.Errorf("refuse keyrings: %w", err)
	}
	return nil
}

// filter returns a filter of system calls that refuses add_key, request_key and keyctl. Their numbers
// are consecutive on each architecture. A 64-bit kernel also runs programs of the 32-bit one.
func filter() []unix.SockFilter {
	const (
		number, arch = 0, 4       // offsets in struct seccomp_data
		x32          = 0x40000000 // marks the calls of a third interface of amd64
		load         = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jump         = unix.BPF_JMP | unix.BPF_K
		end          = unix.BPF_RET | unix.BPF_K
	)
	var program []unix.SockFilter
	for _, calls := range []struct{ arch, first, last uint32 }{
		{unix.AUDIT_ARCH_X86_64, 248, 250},
		{unix.AUDIT_ARCH_I386, 286, 288},
		{unix.AUDIT_ARCH_AARCH64, 217, 219},
		{unix.AUDIT_ARCH_ARM, 309, 311},
	} {
		program = append(program,
			unix.SockFilter{Code: load, K: arch},
			unix.SockFilter{Code: jump | unix.BPF_JEQ, K: calls.arch, Jf: 6}, // to the next architecture
			unix.SockFilter{Code: load, K: number},
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: math.MaxUint32 &^ x32},
			unix.SockFilter{Code: jump | unix.BPF_JGE, K: calls.first, Jf: 2},
			unix.SockFilter{Code: jump | unix.BPF_JGT, K: calls.last, Jt: 1},
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
		)
	}
	return append(program, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
}
