package forwarder

import (
	"net"
	"sync"
)

// limited is a listener with at most cap(free) open connections. Further connections wait.
type limited struct {
	net.Listener
	free chan struct{}
	done chan struct{}
	once sync.Once
}

func limit(listener net.Listener, connections int) *limited {
	return &limited{Listener: listener, free: make(chan struct{}, connections), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: conn, release: sync.OnceFunc(func() { <-l.free })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// counted is a connection that frees its slot when it is closed.
type counted struct {
	net.Conn
	release func()
}

func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
