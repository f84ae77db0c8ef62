package session

import "golang.org/x/sys/unix"

// Commands for open-file-description locks.
const (
	setLock = unix.F_OFD_SETLK
	getLock = unix.F_OFD_GETLK
)
