package terminal

import "golang.org/x/sys/unix"

// Requests that get and set the mode of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// noKey disables a control character.
const noKey = 0xff

// flushInput discards unread input.
func flushInput(fd int) {
	const input = 1                                        // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input) // on failure, keys that were typed early count
}
