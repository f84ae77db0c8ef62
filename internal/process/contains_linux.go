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

// ancestryTries is how often a walk up a moving tree starts again.
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

// namespaceOf returns zero for a process that is gone.
func namespaceOf(pid int) inode {
	var stat unix.Stat_t
	if unix.Stat(namespacePath(pid), &stat) != nil {
		return inode{}
	}
	return inode{stat.Dev, stat.Ino}
}

// inNamespace walks from the process's own namespace up to those around it, as
// far as the kernel shows them.
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

// descends walks from pid up to ancestor. It is not sure when a process of the
// way ended meanwhile.
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

// statField is a number of /proc/PID/stat, counted as proc_pid_stat(5) does: 4 or
// more.
func statField(pid, n int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// pid (name) state parent ...; the name may hold anything, ")" too.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < n-2 {
		return 0, syscall.EINVAL
	}
	return strconv.Atoi(string(fields[n-3]))
}
