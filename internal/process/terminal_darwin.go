package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepTerminal keeps the program's end of the terminal open in coven, too. On
// macOS the last one to close it waits until everything was read, or what was not
// is lost; so the last one is coven, when it has read all.
func keepTerminal(slave *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), slave.Name()), nil
}

// unread reports whether a terminal's master has something to read: what was
// written at the other end. macOS's poll does not know terminals.
func unread(master int) bool {
	waiting, err := unix.IoctlGetInt(master, unix.TIOCOUTQ)
	return err == nil && waiting > 0
}
