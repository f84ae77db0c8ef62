package reads

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offer starts the recording of this thread, and of everything that it executes, and sends the listener over a socket. It
// closes the socket. If the kernel refuses, nothing is recorded. New privileges must already be forbidden.
func (s Scope) Offer(socket int) error {
	listener, err := s.listen()
	if err != nil {
		return errors.Join(fmt.Errorf("record reads: %w", err), unix.Close(socket))
	}
	err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0)
	return errors.Join(err, unix.Close(listener), unix.Close(socket))
}

// listen installs the filter for this thread and returns its listener.
func (s Scope) listen() (int, error) {
	instructions := s.filter()
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

// A call is a system call with a path.
type call struct {
	amd64, arm64 uint32 // its numbers; 0 if there is none
	at           bool   // the path is the second argument, and may be relative to the directory in the first
	looks        bool   // it does not read the file
	flags        int    // the argument with flags; 0 if there is none
	ignored      uint32 // the call is not recorded if one of these flags is set
}

// opening lists the calls that open a file for reading, or execute it.
func opening() []call {
	const written = unix.O_WRONLY | unix.O_DIRECTORY | unix.O_PATH
	return []call{
		{amd64: 2, flags: 1, ignored: written},                        // open
		{amd64: 257, arm64: 56, at: true, flags: 2, ignored: written}, // openat
		{amd64: 437, arm64: 437, at: true},                            // openat2
		{amd64: 59, arm64: 221},                                       // execve
		{amd64: 322, arm64: 281, at: true},                            // execveat
	}
}

// looking lists the calls whose result depends on a file, a directory or a link, or on there being none.
func looking() []call {
	calls := opening()
	for i := range calls {
		calls[i].ignored = 0 // a file that is opened for writing may be expected not to exist
	}
	return append(calls,
		call{amd64: 4, looks: true}, call{amd64: 6, looks: true}, call{amd64: 21, looks: true}, call{amd64: 89, looks: true}, // stat, lstat, access, readlink
		call{amd64: 262, arm64: 79, at: true, looks: true, flags: 3, ignored: unix.AT_EMPTY_PATH},  // newfstatat
		call{amd64: 332, arm64: 291, at: true, looks: true, flags: 2, ignored: unix.AT_EMPTY_PATH}, // statx
		call{amd64: 269, arm64: 48, at: true, looks: true},                                         // faccessat
		call{amd64: 439, arm64: 439, at: true, looks: true},                                        // faccessat2
		call{amd64: 267, arm64: 78, at: true, looks: true},                                         // readlinkat
		call{amd64: 80, arm64: 49, looks: true},                                                    // chdir
		call{amd64: 82, looks: true}, call{amd64: 264, arm64: 38, at: true, looks: true},           // rename, renameat: whether the old name exists
		call{amd64: 316, arm64: 276, at: true, looks: true},                              // renameat2
		call{amd64: 86, looks: true}, call{amd64: 265, arm64: 37, at: true, looks: true}, // link, linkat
		call{amd64: 87, looks: true}, call{amd64: 263, arm64: 35, at: true, looks: true}, // unlink, unlinkat
		call{amd64: 83, looks: true}, call{amd64: 258, arm64: 34, at: true, looks: true}, // mkdir, mkdirat
		call{amd64: 84, looks: true}, call{amd64: 76, arm64: 45, looks: true}, // rmdir, truncate
		call{amd64: 137, arm64: 43, looks: true},                                         // statfs
		call{amd64: 191, arm64: 8, looks: true}, call{amd64: 192, arm64: 9, looks: true}, // getxattr, lgetxattr
	)
}

// calls returns the recorded calls, by their numbers on this architecture.
func (s Scope) calls() map[uint32]call {
	calls := opening()
	if s.Inputs != nil {
		calls = looking()
	}
	byNumber := map[uint32]call{}
	for _, c := range calls {
		number := c.amd64
		if runtime.GOARCH == "arm64" {
			number = c.arm64
		}
		if number != 0 {
			byNumber[number] = c
		}
	}
	return byNumber
}

// hiding lists the numbers of calls after which files can be opened unseen, or paths lead to other files: io_uring_setup,
// open_tree, move_mount, fsmount, open_by_handle_at, chroot, pivot_root, mount and setns.
func hiding() []uint32 {
	if runtime.GOARCH == "arm64" {
		return []uint32{425, 428, 429, 432, 265, 51, 41, 40, 268}
	}
	return []uint32{425, 428, 429, 432, 304, 161, 155, 165, 308}
}

// filter returns a filter that notifies of the recorded calls, and allows everything. If inputs are recorded, it also notifies of
// calls that show that the record is not complete: those in hiding, and those with unknown numbers.
func (s Scope) filter() []unix.SockFilter {
	const (
		number, arch = 0, 4       // offsets in struct seccomp_data
		arguments    = 16         // of 8 bytes, whose lower halves are first: both architectures are little-endian
		foreign      = 0x40000000 // numbers from here are those of another interface
		load         = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jump         = unix.BPF_JMP | unix.BPF_K
		end          = unix.BPF_RET | unix.BPF_K
	)
	own, unseen := uint32(unix.AUDIT_ARCH_X86_64), uint32(unix.SECCOMP_RET_ALLOW)
	if runtime.GOARCH == "arm64" {
		own = unix.AUDIT_ARCH_AARCH64
	}
	if s.Inputs != nil {
		unseen = unix.SECCOMP_RET_USER_NOTIF
	}
	program := []unix.SockFilter{
		{Code: load, K: arch},
		{Code: jump | unix.BPF_JEQ, K: own, Jt: 1},
		{Code: end, K: unseen},
		{Code: load, K: number},
		{Code: jump | unix.BPF_JGE, K: foreign, Jf: 1},
		{Code: end, K: unseen},
	}
	for _, n := range hiding() {
		program = append(program, unix.SockFilter{Code: jump | unix.BPF_JEQ, K: n, Jf: 1}, unix.SockFilter{Code: end, K: unseen})
	}
	for n, c := range s.calls() {
		program = append(program, unix.SockFilter{Code: jump | unix.BPF_JEQ, K: n, Jf: 4}, // to the next call
			unix.SockFilter{Code: load, K: arguments + 8*uint32(c.flags)},
			unix.SockFilter{Code: jump | unix.BPF_JSET, K: c.ignored, Jf: 1},
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	return append(program, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
}

// Accept returns the socket for Offer, and serves the listener that comes over it. The channel yields the record when no recorded
// process is left. It yields nothing if there is no listener.
func (s Scope) Accept() (socket *os.File, record <-chan Opened, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("record reads: %w", err)
	}
	opened := make(chan Opened, 1)
	go func() {
		defer close(opened)
		listener, err := receive(pair[0])
		if _ = unix.Close(pair[0]); err != nil {
			return
		}
		r := recorder{listener: listener, calls: s.calls(), inputs: s.Inputs, Opened: Opened{paths: map[string]bool{}}}
		if s.Inputs != nil {
			r.since = nextFileTime()
		}
		r.serve()
		_ = unix.Close(listener)
		opened <- r.Opened
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
	Opened

	listener int
	calls    map[uint32]call
	inputs   *Inputs // optional
	size     int     // of the paths
	buffer   [unix.PathMax]byte
}

// serve answers notifications until no recorded process is left.
func (r *recorder) serve() {
	const setFlags = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS, since Linux 6.6: a call then switches to this thread at once
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(r.listener), setFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		poll := []unix.PollFd{{Fd: int32(r.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			r.listened = poll[0].Revents&unix.POLLHUP != 0
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
	c, known := r.calls[uint32(n.data.number)]
	flags := n.data.args[c.flags]
	creates := c.flags != 0 && flags&(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) == unix.O_WRONLY|unix.O_CREAT
	if path := r.path(c, n); path != "" && !creates {
		r.put(path, !c.looks)
		if r.inputs != nil && r.inputs.isExcepted(path, !c.looks) {
			r.follow(path, !c.looks)
		}
		if r.inputs != nil && isExecution(c) {
			r.addInterpreters(path)
		}
	}
	if !known || r.size > maxOpened {
		r.incomplete = true
	}
}

func (r *recorder) put(path string, read bool) {
	before, seen := r.paths[path]
	if r.paths[path] = before || read; !seen {
		r.size += len(path)
	}
}

// follow records where a path leads: to the places of the file and of the links to it. A path in a directory for temporary files,
// or in one of a process, can lead to an input.
func (r *recorder) follow(path string, read bool) {
	const most = 40 // links, as in the kernel
	for range most {
		dir, name := filepath.Split(path)
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return // there is no file
		}
		path = filepath.Join(dir, name)
		r.put(path, read)
		target, err := os.Readlink(path)
		if err != nil {
			return
		}
		if path = target; !filepath.IsAbs(path) {
			path = dir + "/" + target
		}
	}
}

func isExecution(c call) bool { return c.amd64 == 59 || c.amd64 == 322 }

// addInterpreters records the programs that the kernel executes instead of a script.
func (r *recorder) addInterpreters(path string) {
	const most = 5 // scripts that are interpreters, as in the kernel
	for range most {
		file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		start := make([]byte, 256) // as in the kernel
		n, _ := file.Read(start)
		_ = file.Close()
		line, _, _ := bytes.Cut(start[:max(n, 0)], []byte("\n"))
		words := bytes.Fields(bytes.TrimPrefix(line, []byte("#!")))
		if !bytes.HasPrefix(line, []byte("#!")) || len(words) == 0 {
			return
		}
		path = string(words[0])
		r.put(path, true)
		r.incomplete = r.incomplete || !filepath.IsAbs(path)
	}
}

// path returns the absolute path of a call, or "" if it has none.
func (r *recorder) path(c call, n *notification) string {
	dir, pointer := int32(unix.AT_FDCWD), n.data.args[0]
	if c.at {
		dir, pointer = int32(n.data.args[0]), n.data.args[1]
	}
	if r.size > maxOpened {
		return ""
	}
	path, err := r.text(int(n.pid), uintptr(pointer))
	r.incomplete = r.incomplete || errors.Is(err, unix.EPERM)
	if len(path) == 0 || path[0] == '/' {
		return ofProcess(string(path), int(n.pid))
	}
	at := "cwd"
	if dir != unix.AT_FDCWD {
		at = "fd/" + strconv.Itoa(int(dir))
	}
	base, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(int(n.pid)), at))
	if err != nil { // the process was killed, or protects itself
		r.incomplete = r.incomplete || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
		return ""
	}
	return base + "/" + string(path)
}

// ofProcess returns a path that means the same file to this process as a path does to another one.
func ofProcess(path string, pid int) string {
	for own, other := range map[string]string{"/proc/self/": "/", "/proc/thread-self/": "/", "/dev/fd/": "/fd/"} {
		if rest, ok := strings.CutPrefix(path, own); ok {
			return "/proc/" + strconv.Itoa(pid) + other + rest
		}
	}
	return path
}

// text reads a path in the memory of a process. It returns no error if it ends nowhere, as the kernel does not take it either.
func (r *recorder) text(pid int, at uintptr) ([]byte, error) {
	page := uintptr(os.Getpagesize())
	for n := 0; n < len(r.buffer); { // reads must not cross into a page that may be missing
		part := r.buffer[n:min(len(r.buffer), n+int(page-at%page))]
		local := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: len(part)}}, 0)
		if err != nil || got <= 0 {
			return nil, err
		}
		if end := bytes.IndexByte(part[:got], 0); end >= 0 {
			return r.buffer[:n+end], nil
		}
		n, at = n+got, at+uintptr(got)
	}
	return nil, nil
}

// nextFileTime waits for the next tick of the clock of file times, some milliseconds, and returns it. Files that were changed before
// have an earlier time.
func nextFileTime() time.Time {
	var first, now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &first) // Linux has this clock
	for now = first; now == first; <-time.After(time.Millisecond) {
		_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	}
	return time.Unix(now.Unix())
}

// isMadeSince reports whether a directory was made, or a file or link was made or changed, at a time or later.
func isMadeSince(path string, at time.Time) bool {
	var stat unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME|unix.STATX_CTIME, &stat) != nil {
		return false
	}
	made := stat.Ctime
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		made = stat.Btime // 0 if the file system does not know it
	}
	return !time.Unix(made.Sec, int64(made.Nsec)).Before(at)
}
