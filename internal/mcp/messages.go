package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of a Listener, whose callers are processes of an agent.
const (
	// maxConnections limits the open connections. An agent CLI has one, and so has each command of the agent
	// that calls a tool.
	maxConnections = 64
	// largeMessage is the size in bytes from which a message counts.
	largeMessage = 256 << 10
	// maxMessages limits the sizes of all large messages that have not been answered, in bytes. Until then,
	// further ones are not read.
	maxMessages = maxLine + maxLine/4
	// messageTimeout limits the time between two parts of a message.
	messageTimeout = 30 * time.Second
)

// budget is the memory for the large messages of a Listener.
type budget struct {
	mu    sync.Mutex
	used  int
	freed chan struct{} // closed when used becomes less
}

// take waits until n bytes are free.
func (b *budget) take(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		if b.used+n <= maxMessages {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if n > 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// lineConn is an sdk.Connection on which each message is a line. Unlike that of sdk.IOTransport, it keeps no
// buffers between messages.
type lineConn struct {
	ctx    context.Context
	conn   *net.UnixConn
	in     *bufio.Reader
	budget *budget

	writing sync.Mutex
	mu      sync.Mutex
	pending map[jsonrpc.ID]int // sizes of large calls that have not been answered
	taken   int                // bytes of the budget
}

// Connect implements sdk.Transport.
func (c *lineConn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements sdk.Connection.
func (*lineConn) SessionID() string { return "" }

// Close implements sdk.Connection.
func (c *lineConn) Close() error { return c.conn.Close() }

// Read implements sdk.Connection.
func (c *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	line, reserved, err := c.line()
	if err != nil {
		c.give(reserved)
		return nil, err
	}
	message, err := jsonrpc.DecodeMessage(line)
	if reserved == 0 {
		return message, err
	}
	if call, ok := message.(*jsonrpc.Request); ok && call.IsCall() {
		c.mu.Lock()
		if c.pending[call.ID] == 0 { // otherwise the message counts until the connection ends
			c.pending[call.ID] = len(line)
		}
		c.mu.Unlock()
		reserved -= len(line)
	}
	c.give(reserved)
	return message, err
}

// Write implements sdk.Connection.
func (c *lineConn) Write(_ context.Context, message jsonrpc.Message) error {
	if answer, ok := message.(*jsonrpc.Response); ok {
		defer c.answered(answer.ID)
	}
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// line reads a line. It waits for its beginning without a limit. reserved is the part of the budget that
// the line has taken.
func (c *lineConn) line() (line []byte, reserved int, err error) {
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, 0, err
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, 0, err
	}
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(messageTimeout)); err != nil {
			return nil, reserved, err
		}
		part, err := c.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, reserved, fmt.Errorf("read a message: %w", err)
		case len(line) > maxLine:
			return nil, reserved, fmt.Errorf("a message has more than %d bytes", maxLine)
		case len(line) > largeMessage && reserved == 0:
			if err := c.take(maxLine); err != nil {
				return nil, 0, err
			}
			reserved = maxLine
			line = append(make([]byte, 0, maxLine+c.in.Size()), line...) // it does not grow any more
		}
		if err == nil {
			return line, reserved, nil
		}
	}
}

// answered frees the budget of a call.
func (c *lineConn) answered(id jsonrpc.ID) {
	c.mu.Lock()
	size := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	c.give(size)
}

func (c *lineConn) take(n int) error {
	err := c.budget.take(c.ctx, n)
	if err == nil {
		c.mu.Lock()
		c.taken += n
		c.mu.Unlock()
	}
	return err
}

func (c *lineConn) give(n int) {
	c.mu.Lock()
	n = min(n, c.taken)
	c.taken -= n
	c.mu.Unlock()
	c.budget.give(n)
}

// end frees the budget after the connection has ended.
func (c *lineConn) end() { c.give(maxMessages) }
