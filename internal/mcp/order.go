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

// turnHeader has the number of a call in the order of arrival.
const turnHeader = "Coven-Turn"

// ordered is a transport whose calls of tools begin in the order in which they arrive: the SDK
// handles each call in a goroutine of its own. A call has begun when it says so (tool.Begun), or
// when it is answered.
type ordered struct {
	sdk.Transport
	calls *calls
}

// calls are the calls of one connection.
type calls struct {
	mu    sync.Mutex
	last  chan struct{}         // closed when the last call has begun
	turns map[string]*turn      // by number
	byID  map[jsonrpc.ID]func() // of calls without an answer: says that the call has begun
	next  int
	over  chan struct{} // closed when the connection is gone
}

// turn is the place of a call.
type turn struct {
	before <-chan struct{} // closed when the call before has begun; nil: there is none
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

// arrive gives the call that was just read its turn.
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

// after returns a func that calls begun, but not before the call before has begun: a call that fails
// at once does not let the next one overtake others.
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

// end ends the order: the connection is gone.
func (c *calls) end() { close(c.over) }

// await waits until all calls that arrived before have begun. The context that it returns lets
// the call say that it has begun.
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
