package egress

import (
	"context"
	"net"
	"sync"
	"time"
)

// listener limits the open connections and closes idle ones.
type listener struct {
	net.Listener
	ctx   context.Context
	slots chan struct{}
	idle  time.Duration
}

func newListener(ctx context.Context, l net.Listener, limits Limits) *listener {
	return &listener{l, ctx, make(chan struct{}, limits.Connections), limits.IdleTimeout}
}

// Accept implements net.Listener. It waits while the limit of open connections is reached.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
	inner, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &conn{Conn: inner, limit: l.idle}
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	c.closed = sync.OnceValue(func() error {
		c.cancel()
		err := inner.Close()
		<-l.slots
		return err
	})
	c.timer = time.AfterFunc(l.idle, func() { _ = c.Close() })
	context.AfterFunc(c.ctx, func() { _ = c.Close() })
	return c, nil
}

// conn is a connection to a program. All traffic of the proxy passes through one of these,
// in one direction or the other. It is closed when it is idle for too long.
type conn struct {
	net.Conn
	ctx    context.Context // done when the connection is closed
	cancel context.CancelFunc
	closed func() error
	limit  time.Duration
	timer  *time.Timer
}

func connContext(_ context.Context, c net.Conn) context.Context { return c.(*conn).ctx }

// Read implements io.Reader.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.moved(n)
	return n, err
}

// Write implements io.Writer.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.moved(n)
	return n, err
}

func (c *conn) moved(n int) {
	if n > 0 && c.ctx.Err() == nil {
		c.timer.Reset(c.limit)
	}
}

// CloseWrite signals the end of data to the program.
func (c *conn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// Close implements io.Closer. It cancels the connection's context.
func (c *conn) Close() error {
	c.timer.Stop()
	return c.closed()
}
