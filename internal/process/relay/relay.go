// Package relay passes connections of programs in a network namespace of their own on to ports of the machine's loopback.
// Package loopback is the other end.
//
// A socket belongs to the namespace in which it was made, not to that of the process that uses it. A process in the
// namespace makes a listener for each port on 127.0.0.1 and sends them to a Relay outside, which accepts the connections
// and connects them with the same ports of the machine's 127.0.0.1.
package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/net/netutil"
)

// maxConnections is the maximum number of open connections to a port.
const maxConnections = 256

// Relay accepts the connections to ports in a namespace.
type Relay struct {
	ports  []int
	socket *net.UnixConn // from the process in the namespace
	ctx    context.Context
	cancel context.CancelFunc // by Close

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]bool // listeners and connections
}

// keep remembers something to close. It returns false, and closes it, after Close.
func (r *Relay) keep(c io.Closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	if r.open == nil {
		r.open = map[io.Closer]bool{}
	}
	r.open[c] = true
	return true
}

func (r *Relay) drop(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	_ = c.Close()
}

// Close ends all connections. The programs must have ended. It returns nil.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.cancel()
	_ = r.socket.Close()
	for c := range r.open {
		_ = c.Close()
	}
	return nil
}

// serve accepts the connections to a port until the listener is closed.
func (r *Relay) serve(file *os.File, port int) {
	all, err := net.FileListener(file)
	if _ = file.Close(); err != nil || !r.keep(all) {
		return
	}
	defer r.drop(all)
	listener := netutil.LimitListener(all, maxConnections) // further connections wait
	for {
		theirs, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go r.pass(theirs, port)
		}
	}
}

// pass connects a connection of the program with a port of the machine.
func (r *Relay) pass(theirs net.Conn, port int) {
	if !r.keep(theirs) {
		return
	}
	defer r.drop(theirs)
	ours, err := (&net.Dialer{}).DialContext(r.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil || !r.keep(ours) {
		return
	}
	defer r.drop(ours)
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyStream(ours, theirs)
	}()
	copyStream(theirs, ours)
	<-done
}

// copyStream copies one direction of a connection, including its end.
func copyStream(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
