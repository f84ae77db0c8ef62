package reads

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offer starts the recording of this thread, and of everything that it executes, and sends the listener over a socket. It
// closes the socket. If the kernel refuses, nothing is recorded. New privileges must already be forbidden.
func Offer(socket int) error {
	listener, err := listen()
	if err != nil {
		return errors.Join(fmt.Errorf("record reads: %w", err), unix.Close(socket))
	}
	err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0)
	return errors.Join(err, unix.Close(listener), unix.Close(socket))
}

// listen installs the filter for this thread and returns its listener.
func listen() (int, error) {
	instructions := filter()
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	var listener uintptr
	errno := unix.EINVAL
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} { // Linux has the first since 5.19
		if errno == unix.EINVAL {
			flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
			listener, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
		}
	}
	if errno != 0 {
		return -1, errno
	}
	return int(listener), nil
}

// calls are the numbers of the system calls that open or execute a file. open and openat have flags as a direct argument.
type calls struct{ arch, open, openat, openat2, execve, execveat uint32 }

func ownCalls() calls {
	if runtime.GOARCH == "arm64" {
		return calls{unix.AUDIT_ARCH_AARCH64, none, 56, 437, 221, 281}
	}
	return calls{unix.AUDIT_ARCH_X86_64, 2, 257, 437, 59, 322}
}

// none is the number of a system call that the architecture does not have.
const none = 0xffff

// filter returns a filter that notifies of calls which open a file for reading or execute it, and allows everything.
func filter() []unix.SockFilter {
	const (
		number, arch = 0, 4 // offsets in struct seccomp_data
		second       = 24   // lower half of the second argument: both architectures are little-endian
		third        = 32
		ignored      = unix.O_WRONLY | unix.O_DIRECTORY | unix.O_PATH
		load         = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jump         = unix.BPF_JMP | unix.BPF_K
		end          = unix.BPF_RET | unix.BPF_K
	)
	own := ownCalls()
	return []unix.SockFilter{
		{Code: load, K: arch},
		{Code: jump | unix.BPF_JEQ, K: own.arch, Jf: 10}, // allow
		{Code: load, K: number},
		{Code: jump | unix.BPF_JEQ, K: own.openat, Jt: 4},
		{Code: jump | unix.BPF_JEQ, K: own.open, Jt: 5},
		{Code: jump | unix.BPF_JEQ, K: own.openat2, Jt: 7}, // notify
		{Code: jump | unix.BPF_JEQ, K: own.execve, Jt: 6},
		{Code: jump | unix.BPF_JEQ, K: own.execveat, Jt: 5, Jf: 4},
		{Code: load, K: third},
		{Code: jump | unix.BPF_JSET, K: ignored, Jt: 2, Jf: 3},
		{Code: load, K: second},
		{Code: jump | unix.BPF_JSET, K: ignored, Jf: 1},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
		{Code: end, K: unix.SECCOMP_RET_USER_NOTIF},
	}
}

// Accept returns the socket for Offer, and serves the listener that comes over it. The channel yields the paths that were
// opened when no recorded process is left. It yields nothing if there is no listener.
func Accept() (socket *os.File, paths <-chan []string, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("record reads: %w", err)
	}
	opened := make(chan []string, 1)
	go func() {
		defer close(opened)
		listener, err := receive(pair[0])
		if _ = unix.Close(pair[0]); err != nil {
			return
		}
		r := recorder{listener: listener, seen: map[string]bool{}}
		r.serve()
		_ = unix.Close(listener)
		opened <- r.opened
	}()
	return os.NewFile(uintptr(pair[1]), "reads"), opened, nil
}

func receive(socket int) (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return -1, err
	}
	if len(messages) == 0 {
		return -1, errors.New("no listener")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// notification is struct seccomp_notif: a call that the kernel has suspended.
type notification struct {
	id   uint64
	pid  uint32
	_    uint32
	data struct {
		number int32
		arch   uint32
		_      uint64
		args   [6]uint64
	}
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// maxOpened limits the total length of the recorded paths.
const maxOpened = 16 << 20

type recorder struct {
	listener int
	calls    calls
	seen     map[string]bool
	opened   []string
	size     int // of opened
	buffer   [unix.PathMax]byte
}

// serve answers notifications until no recorded process is left.
func (r *recorder) serve() {
	r.calls = ownCalls()
	const setFlags = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS, since Linux 6.6: a call then switches to this thread at once
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), setFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		poll := []unix.PollFd{{Fd: int32(r.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if r.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // the process was killed
		}
		r.add(&n)
		answer := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		r.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // fails if the process was killed
	}
}

func (r *recorder) control(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(r.listener), request, uintptr(argument))
	return errno
}

// add records the path of a call.
func (r *recorder) add(n *notification) {
	dir, pointer := int32(unix.AT_FDCWD), n.data.args[0]
	switch uint32(n.data.number) {
	case r.calls.openat, r.calls.openat2, r.calls.execveat:
		dir, pointer = int32(n.data.args[0]), n.data.args[1]
	}
	path := r.text(int(n.pid), uintptr(pointer))
	if path == nil || r.size > maxOpened {
		return
	}
	if path[0] != '/' {
		at := filepath.Join("/proc", strconv.Itoa(int(n.pid)), "cwd")
		if dir != unix.AT_FDCWD {
			at = filepath.Join("/proc", strconv.Itoa(int(n.pid)), "fd", strconv.Itoa(int(dir)))
		}
		base, err := os.Readlink(at)
		if err != nil {
			return // the process was killed
		}
		path = append([]byte(base+"/"), path...)
	}
	if !r.seen[string(path)] {
		r.seen[string(path)] = true
		r.opened = append(r.opened, string(path))
		r.size += len(path)
	}
}

// text reads a path in the memory of a process. It returns nil if there is none.
func (r *recorder) text(pid int, at uintptr) []byte {
	page := uintptr(os.Getpagesize())
	for n := 0; n < len(r.buffer); { // reads must not cross into a page that may be missing
		part := r.buffer[n:min(len(r.buffer), n+int(page-at%page))]
		local := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: len(part)}}, 0)
		if err != nil || got <= 0 {
			return nil
		}
		if end := bytes.IndexByte(part[:got], 0); end >= 0 {
			return nilIfEmpty(r.buffer[:n+end])
		}
		n, at = n+got, at+uintptr(got)
	}
	return nil
}

func nilIfEmpty(path []byte) []byte {
	if len(path) == 0 {
		return nil
	}
	return path
}
