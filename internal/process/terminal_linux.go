package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepTerminal keeps no file open: a terminal can be read after its other end is closed.
func keepTerminal(*os.File) (*os.File, error) { return nil, nil } //nolint:nilnil // no file is needed

// unread reports whether a terminal's master has something to read.
func unread(master int) bool {
	waiting := []unix.PollFd{{Fd: int32(master), Events: unix.POLLIN}}
	_, err := unix.Poll(waiting, 0)
	return err == nil && waiting[0].Revents&unix.POLLIN != 0
}
