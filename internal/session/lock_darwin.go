package session

// Commands for open-file-description locks: F_OFD_SETLK and F_OFD_GETLK from the
// fcntl.h of macOS. Package unix lacks them.
const (
	setLock = 90
	getLock = 92
)
