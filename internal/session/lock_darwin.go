package session

// The commands of open-file-description locks: F_OFD_SETLK and F_OFD_GETLK of
// macOS's fcntl.h, which package unix does not have.
const (
	setLock = 90
	getLock = 92
)
