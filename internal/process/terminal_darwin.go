package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepTerminal also keeps the program's end of the terminal open in coven. On macOS,
// the last close of it waits for a reader or discards unread output; coven must
// therefore close it last, after it has read everything.
func keepTerminal(slave *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), slave.Name()), nil
}

// unread reports whether a terminal's master has unread output. macOS's poll does not
// support terminals.
func unread(master int) bool {
	waiting, err := unix.IoctlGetInt(master, unix.TIOCOUTQ)
	return err == nil && waiting > 0
}
