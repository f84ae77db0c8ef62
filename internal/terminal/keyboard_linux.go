package terminal

import "golang.org/x/sys/unix"

// The requests that read and set the mode of a terminal.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// noKey in place of a control character turns it off.
const noKey = 0

// flushInput discards what was typed and not read.
func flushInput(fd int) {
	_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // otherwise a key counts that was typed early
}
