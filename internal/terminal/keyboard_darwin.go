package terminal

import "golang.org/x/sys/unix"

// The requests that read and set the mode of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// noKey in place of a control character turns it off.
const noKey = 0xff

// flushInput discards what was typed and not read.
func flushInput(fd int) {
	const input = 1                                        // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input) // otherwise a key counts that was typed early
}
