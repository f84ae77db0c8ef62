package mcp

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/tool"
)

// turnHeader carries the number of a call in the order of arrival.
const turnHeader = "Coven-Turn"

// ordered is a transport that starts tool calls in the order of their arrival, because the SDK
// handles each call in a separate goroutine. A call counts as started when it calls tool.Begun or
// when it is answered.
type ordered struct {
	sdk.Transport
	calls *calls
}

type calls struct {
	mu    sync.Mutex
	last  chan struct{}         // closed when the latest call has started
	turns map[string]*turn      // by number
	byID  map[jsonrpc.ID]func() // marks unanswered calls as started
	next  int
	over  chan struct{} // closed when the connection ends
}

// turn is the position of a call in the order.
type turn struct {
	before <-chan struct{} // closed when the previous call has started; nil for the first call
	begun  func()
}

func inOrder(t sdk.Transport) (*ordered, *calls) {
	c := &calls{turns: map[string]*turn{}, byID: map[jsonrpc.ID]func(){}, over: make(chan struct{})}
	return &ordered{t, c}, c
}

// Connect implements sdk.Transport.
func (o *ordered) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := o.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &orderedConn{conn, o.calls}, nil
}

type orderedConn struct {
	sdk.Connection
	calls *calls
}

// Read implements sdk.Connection.
func (c *orderedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if call, ok := message.(*jsonrpc.Request); ok && call.Method == "tools/call" && call.Extra == nil {
		call.Extra = &sdk.RequestExtra{Header: http.Header{turnHeader: {c.calls.arrive(call.ID)}}}
	}
	return message, err
}

// Write implements sdk.Connection.
func (c *orderedConn) Write(ctx context.Context, message jsonrpc.Message) error {
	if answer, ok := message.(*jsonrpc.Response); ok {
		c.calls.answered(answer.ID)
	}
	return c.Connection.Write(ctx, message)
}

func (c *calls) answered(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begun := c.byID[id]; begun != nil {
		begun()
		delete(c.byID, id)
	}
}

// arrive assigns a turn to the call that was just read.
func (c *calls) arrive(id jsonrpc.ID) (number string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	number = strconv.Itoa(c.next)
	begun := make(chan struct{})
	t := &turn{before: c.last, begun: c.after(c.last, func() { close(begun) })}
	c.last, c.turns[number], c.byID[id] = begun, t, t.begun
	return number
}

// after returns a func that calls begun once the previous call has started. So the failure of a call
// does not let the next call overtake earlier ones.
func (c *calls) after(before <-chan struct{}, begun func()) func() {
	return sync.OnceFunc(func() {
		if before == nil {
			begun()
			return
		}
		select {
		case <-before:
			begun()
		default:
			go func() {
				select {
				case <-before:
					begun()
				case <-c.over:
				}
			}()
		}
	})
}

// end releases all waiting calls after the connection has ended.
func (c *calls) end() { close(c.over) }

// await waits until all earlier calls have started. With the returned context, the call can
// report its own start.
func (c *calls) await(ctx context.Context, req *sdk.CallToolRequest) context.Context {
	if req.Extra == nil {
		return ctx
	}
	number := req.Extra.Header.Get(turnHeader)
	c.mu.Lock()
	t := c.turns[number]
	delete(c.turns, number)
	c.mu.Unlock()
	if t == nil {
		return ctx
	}
	if t.before != nil {
		select {
		case <-t.before:
		case <-ctx.Done():
		case <-c.over:
		}
	}
	return tool.WithBegun(ctx, t.begun)
}
