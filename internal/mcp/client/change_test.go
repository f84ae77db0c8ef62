package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/mcp/servers"
)

// restless is a server that changes its tools. It announces changes many times before it answers a request.
type restless struct {
	out   io.Writer
	lists int               // number of tools/list requests
	held  []json.RawMessage // unanswered ones
	early bool              // also announce a change before the first answer
	// broken makes it answer only the first tools/list request.
	broken bool
	schema string // of its tools; an object schema if empty
}

func (s *restless) write(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", args...) // the client may be gone
}

func (s *restless) tools(id json.RawMessage) {
	s.write(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"v%d","inputSchema":%s}]}}`, id, s.lists, cmp.Or(s.schema, `{"type":"object"}`))
}

// serve answers until the client is gone. It returns the maximum number of concurrent tools/list requests.
func (s *restless) serve(in io.Reader) (most int) {
	const changes = 1000
	decoder := json.NewDecoder(in)
	for {
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if decoder.Decode(&message) != nil {
			return most
		}
		switch {
		case message.Method == "initialize":
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"f","version":"1"}}}`, message.ID)
		case message.Method == "tools/list":
			if s.lists++; s.broken && s.lists > 1 {
				s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"broken"}}`, message.ID)
				continue
			}
			if s.early && s.lists == 1 {
				s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			if s.lists == 1 || len(s.held) == 0 && s.lists > 2 {
				s.tools(message.ID)
				continue
			}
			if s.held = append(s.held, message.ID); len(s.held) > 1 {
				continue
			}
			go func() {
				for range changes {
					s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				s.write(`{"jsonrpc":"2.0","id":"seen","method":"ping"}`)
			}()
		case message.Method == "server/discover":
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}`, message.ID)
		case message.Method == "tools/call":
			s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, message.ID)
		case string(message.ID) == `"seen"`: // coven has received all announcements
			most = len(s.held)
			for _, id := range s.held {
				s.tools(id)
			}
			s.held = nil
		}
	}
}

// A server that announces a thousand changes receives one tools/list request at a time, and its last
// list counts, even if it announces changes while coven connects.
func TestChangedOften(t *testing.T) {
	for _, early := range []bool{false, true} {
		changed := make(chan struct{}, 2000)
		c := &connection{server: servers.Server{Name: "restless"}, set: &Set{options: Options{
			Version: "1", ConnectTime: time.Minute, CallTime: time.Minute, Changed: func() { changed <- struct{}{} },
		}}}
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		most := make(chan int, 1)
		go func() {
			most <- (&restless{out: toClient, early: early}).serve(fromClient)
			_ = toClient.Close()
		}()
		reach := way{&sdk.IOTransport{Reader: fromServer, Writer: toServer}, func() {}, func(err error) error { return err }}
		if err := c.initialize(t.Context(), reach); err != nil {
			t.Fatal(err)
		}
		if !early {
			if _, err := c.call(t.Context(), "v1", json.RawMessage(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		for known := c.known(); known[0].Name != "v3"; known = c.known() {
			<-changed
		}
		_ = fromClient.Close()
		if n := <-most; n != 1 {
			t.Errorf("it was asked for its tools %d times at once", n)
		}
	}
}

// If a server's changed tools cannot be read, the old ones stay, and the failure is reported once.
func TestStale(t *testing.T) {
	stale := make(chan Failure, 9)
	c := &connection{server: servers.Server{Name: "stale"}, set: &Set{options: Options{
		Version: "1", ConnectTime: time.Minute, CallTime: time.Minute, Stale: func(f Failure) { stale <- f },
	}}}
	fromServer, toClient := io.Pipe()
	fromClient, toServer := io.Pipe()
	s := &restless{out: toClient, broken: true}
	go s.serve(fromClient)
	reach := way{&sdk.IOTransport{Reader: fromServer, Writer: toServer}, func() {}, func(err error) error { return err }}
	if err := c.initialize(t.Context(), reach); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.call(t.Context(), "v1", json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		for reading := true; reading; runtime.Gosched() {
			c.mu.Lock()
			reading = c.reading
			c.mu.Unlock()
		}
	}
	if known := c.known(); len(known) != 1 || known[0].Name != "v1" {
		t.Errorf("its tools are %v", known)
	}
	if f := <-stale; f.Server != "stale" || !strings.Contains(f.Err.Error(), "list its tools: ") || len(stale) != 0 {
		t.Errorf("%v, and %d more", f, len(stale))
	}
	_ = fromClient.Close()
}

// A tool with an invalid schema does not make the API refuse the agent's requests.
func TestSchema(t *testing.T) {
	const anything = `{"type":"object"}`
	for schema, want := range map[string]string{
		`{"properties":{"a":{"type":"string"}},"type":"object"}`: "",
		`null`: anything, `5`: anything, `true`: anything, `[]`: anything, `{}`: anything, `{"type":"string"}`: anything, `{"type":["object","null"]}`: anything,
		`{"type":"object","properties":5}`: anything, `{"type":"object","$ref":"https://example.com/x"}`: anything, `{"type":"object","pattern":"("}`: anything,
	} {
		c := &connection{server: servers.Server{Name: "odd"}, set: &Set{options: Options{Version: "1", ConnectTime: time.Minute, CallTime: time.Minute}}}
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		go (&restless{out: toClient, schema: schema}).serve(fromClient)
		reach := way{&sdk.IOTransport{Reader: fromServer, Writer: toServer}, func() {}, func(err error) error { return err }}
		if err := c.initialize(t.Context(), reach); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = schema
		}
		if got := c.tool("v1", c.known()[0]).Schema; string(got) != want {
			t.Errorf("%s: %s", schema, got)
		}
		_ = fromClient.Close()
	}
}
