package mcp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// credentials returns the process and the user at the other end of a Unix socket.
// macOS reports them separately.
func credentials(fd int) (pid, uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the peer's user: %w", err)
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the peer's process: %w", err)
	}
	return pid, int(cred.Uid), nil
}
