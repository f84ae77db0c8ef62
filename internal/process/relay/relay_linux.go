package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// New returns a relay for ports, and the file for loopback.Open.
func New(ports []int) (closer io.Closer, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("relay ports: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "relay")
	theirs = os.NewFile(uintptr(pair[1]), "relay")
	socket, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, nil, fmt.Errorf("relay ports: %w", errors.Join(err, theirs.Close()))
	}
	r := &Relay{ports: ports, socket: socket.(*net.UnixConn)} //nolint:forcetypeassert // it is one
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.receive()
	return r, theirs, nil
}

// receive receives the listeners and serves them.
func (r *Relay) receive() {
	rights := make([]byte, unix.CmsgSpace(4*len(r.ports)))
	_, n, _, _, err := r.socket.ReadMsgUnix([]byte{0}, rights)
	if err != nil {
		return
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return
	}
	fds, _ := unix.ParseUnixRights(&messages[0]) // no other message is sent
	for i, fd := range fds {
		go r.serve(os.NewFile(uintptr(fd), "relayed port"), r.ports[i])
	}
}
