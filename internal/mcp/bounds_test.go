package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/mcp"
)

// dial connects to the gate, sends the token, and starts an MCP session by hand.
func (f *fixture) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReaderSize(conn, 1<<20)
	_, _ = fmt.Fprintln(conn, f.getenv(mcp.TokenEnv))
	_, _ = fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1`) {
		t.Fatal(line, err)
	}
	_, _ = fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return conn, in
}

// hold is a line that calls the tool hold, with n bytes.
func hold(n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hold","arguments":{"x":"%s"}}}`+"\n", strings.Repeat("x", n))
}

// Any number of connections of a hostile agent leaves descriptors for coven, and memory. Meanwhile the agent
// CLI, which was connected first, gets answers.
func TestConnectionsAreBounded(t *testing.T) {
	f := listen(t)
	s, _ := f.connect(t)
	opened := make(chan net.Conn, 500)
	for range cap(opened) {
		if conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv)); err == nil {
			opened <- conn
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, _ = fmt.Fprintln(conn, f.getenv(mcp.TokenEnv))
		}
	}
	close(opened)
	var idle []net.Conn
	for conn := range opened { // those that are not closed have a server, which answers
		_, _ = fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			idle = append(idle, conn)
		} else {
			_ = conn.Close()
		}
	}
	if len(idle) == 0 || len(idle) > 100 {
		t.Errorf("%d of %d connections are open", len(idle), cap(opened))
	}
	ask(t, s, map[string]any{"tool_name": "Read", "input": map[string]any{}, "tool_use_id": "t"})
	<-f.calls
	for _, conn := range idle {
		_ = conn.Close()
	}
}

// The large messages of all connections together have a limit: further ones wait for the answers.
// Small ones do not wait.
func TestMessagesAreBounded(t *testing.T) {
	const large = 3 << 20
	var held, most atomic.Int64
	free := make(chan struct{})
	f := listen(t, named("hold", func(_ context.Context, arguments json.RawMessage) (string, error) {
		if len(arguments) >= large {
			most.Store(max(most.Load(), held.Add(1)))
			<-free
			held.Add(-1)
		}
		return "done", nil
	}))
	const connections = 5
	done := make(chan error, connections)
	for range connections {
		conn, in := f.dial(t)
		go func() {
			_, err := conn.Write(hold(large))
			if err == nil {
				_, err = in.ReadString('\n')
			}
			done <- err
		}()
	}
	for range 100 {
		conn, in := f.dial(t)
		_, _ = conn.Write(hold(10))
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "done") {
			t.Fatal(line, err)
		}
		_ = conn.Close()
	}
	close(free)
	for range connections {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d large messages were answered at once", most.Load())
	}
}

// A message that is too long, or not a JSON object on one line, ends its connection.
func TestMalformedMessages(t *testing.T) {
	f := listen(t)
	for name, text := range map[string]string{
		"long": strings.Repeat("x", 30<<20), "lines": "{\n" + strings.Repeat("\"a\":1,\n", 10), "batch": `[{"jsonrpc":"2.0","id":1,"method":"ping"}]` + "\n",
	} {
		conn, in := f.dial(t)
		_, _ = conn.Write([]byte(text))
		if line, err := in.ReadString('\n'); err == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
}
