package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ancestryTries limits how often a walk up a changing tree is repeated.
const ancestryTries = 5

// holds reports whether a process is in the namespace or descends from the shim.
func (c *Child) holds(pid int) bool {
	if c.mode.containment == PIDNamespace {
		return c.namespace != inode{} && inNamespace(pid, c.namespace)
	}
	for range ancestryTries {
		if found, sure := descends(pid, c.process.Pid); sure {
			return found
		}
	}
	return false
}

func namespacePath(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }

// namespaceOf returns zero if the process has ended.
func namespaceOf(pid int) inode {
	var stat unix.Stat_t
	if unix.Stat(namespacePath(pid), &stat) != nil {
		return inode{}
	}
	return inode{stat.Dev, stat.Ino}
}

// inNamespace walks from the process's namespace up to its ancestors, as far as the
// kernel shows them.
func inNamespace(pid int, want inode) bool {
	fd, err := unix.Open(namespacePath(pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == nil {
		var stat unix.Stat_t
		err = unix.Fstat(fd, &stat)
		if err == nil && want == (inode{stat.Dev, stat.Ino}) {
			return unix.Close(fd) == nil
		}
		parent := -1
		if err == nil {
			parent, err = unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		}
		err = errors.Join(err, unix.Close(fd))
		fd = parent
	}
	return false
}

// descends walks from pid up to ancestor. sure is false if a process on the way ended
// during the walk.
func descends(pid, ancestor int) (found, sure bool) {
	for pid > 1 {
		if pid == ancestor {
			return true, true
		}
		parent, err := parentOf(pid)
		if err != nil {
			return false, false
		}
		pid = parent
	}
	return false, true
}

func parentOf(pid int) (int, error) { return statField(pid, 4) }

// statField returns a number in /proc/PID/stat. n is the field's number in
// proc_pid_stat(5), 4 or more.
func statField(pid, n int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// pid (name) state parent ...; the name may contain any characters, including ")".
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < n-2 {
		return 0, syscall.EINVAL
	}
	return strconv.Atoi(string(fields[n-3]))
}
