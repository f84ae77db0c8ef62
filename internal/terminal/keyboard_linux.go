package terminal

import "golang.org/x/sys/unix"

// Requests that get and set the mode of a terminal.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// noKey disables a control character.
const noKey = 0

// flushInput discards unread input.
func flushInput(fd int) {
	_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // on failure, keys that were typed early count
}
