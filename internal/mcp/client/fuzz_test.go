package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/mcp/servers"
)

// Arbitrarily corrupted server output results in an error or an answer: coven does not panic and does not exceed its
// time limits. The input replaces the server's answer to initialize, tools/list, or tools/call.
func FuzzServer(f *testing.F) {
	for _, text := range []string{
		``, `null`, `[]`, `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"","inputSchema":5}]}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"../x","inputSchema":{"type":"object","$ref":"#"}}],"nextCursor":"a"}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text"},{"type":"zip"},null],"isError":"no"}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource","resource":null}]}}`,
		`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}`,
		strings.Repeat(`{"a":`, 2000),
		`{"jsonrpc":"2.0","id":ID,"result":{"tools":[null]}}`, `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"x","annotations":null,"inputSchema":null}]}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource"},{"type":"resource_link"},{"type":"image"},{"type":"audio"}]}}`,
	} {
		for stage := range byte(3) {
			f.Add(stage, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, stage byte, answer []byte) {
		c := &connection{server: servers.Server{Name: "fuzzed"}, set: &Set{options: Options{Version: "1", ConnectTime: time.Minute, CallTime: time.Minute}}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond) // a server that never answers is a valid case
		defer cancel()
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		go serve(fromClient, toClient, int(stage%3), answer)
		defer func() { _ = fromClient.Close(); _ = toClient.Close() }()
		session, tools, err := c.openSession(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer, MaxLineLength: maxMessage})
		if err != nil {
			return
		}
		for _, one := range tools {
			_ = c.tool(plain(one.Name), one)
		}
		c.session, c.end = session, func() {}
		if _, err := c.call(ctx, "look", json.RawMessage(`{}`)); err != nil {
			return
		}
	})
}

// serve answers like a server, but replaces one answer.
func serve(in io.Reader, out *io.PipeWriter, stage int, answer []byte) {
	decoder := json.NewDecoder(in)
	for {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if decoder.Decode(&request) != nil {
			_ = out.Close()
			return
		}
		honest := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"f","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"x"}]}`,
		}[request.Method]
		if request.ID == nil {
			continue
		}
		line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, honest)
		if honest == "" {
			line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}`, request.ID)
		}
		if request.Method == []string{"initialize", "tools/list", "tools/call"}[stage] {
			line = bytes.ReplaceAll(answer, []byte("ID"), request.ID)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return
		}
	}
}
