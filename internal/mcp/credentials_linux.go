package mcp

import "golang.org/x/sys/unix"

// credentials returns the process and the user at the other end of a Unix socket.
func credentials(fd int) (pid, uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), int(cred.Uid), nil
}
