package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/tool"
)

// connection is the connection to one server.
type connection struct {
	server servers.Server
	set    *Set

	starting sync.Mutex // held while connecting

	mu       sync.Mutex
	session  *sdk.ClientSession // nil if not connected
	end      func()             // stops the program
	tools    []*sdk.Tool
	changed  *sdk.ClientSession // session whose server has announced changed tools that have not been read; nil for none
	reading  bool               // whether refreshTools is running
	stale    bool               // whether reading the changed tools has failed before
	restarts int
	closed   bool
	reports  map[string]func(string) // progress functions of running calls, by token
	token    int
}

// known returns the server's current tools.
func (c *connection) known() []*sdk.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

// connect connects to the server and reads its tools.
func (c *connection) connect(ctx context.Context) error {
	s, err := c.server.Expand(c.set.options.Getenv)
	if err != nil {
		return err
	}
	reach, err := c.reach(context.WithoutCancel(ctx), s) // the server outlives this call; close ends it
	if err != nil {
		return err
	}
	return c.initialize(ctx, reach)
}

// initialize initializes the server and stores the session.
func (c *connection) initialize(ctx context.Context, reach way) error {
	limit := c.set.options.ConnectTime
	timed, cancel := context.WithTimeoutCause(ctx, limit, late(limit))
	defer cancel()
	session, tools, err := c.openSession(timed, reach.transport)
	if err != nil {
		reach.end()
		return cmp.Or(context.Cause(timed), reach.explain(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go reach.end()
		return errClosed
	}
	c.session, c.end, c.tools = session, reach.end, tools
	c.refreshTools()
	return nil
}

// openSession opens a session and reads the tools.
func (c *connection) openSession(ctx context.Context, transport sdk.Transport) (*sdk.ClientSession, []*sdk.Tool, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "coven", Version: c.set.options.Version}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(_ context.Context, r *sdk.ToolListChangedRequest) { c.change(r.Session) },
		ProgressNotificationHandler: c.progress,
	})
	type opened struct {
		session *sdk.ClientSession
		tools   []*sdk.Tool
		err     error
	}
	done := make(chan opened, 1) // a server may ignore the context and never answer
	go func() {
		session, err := client.Connect(ctx, transport, nil)
		if err != nil {
			done <- opened{err: fmt.Errorf("connect: %w", err)}
			return
		}
		tools, err := list(ctx, session)
		done <- opened{session, tools, err}
	}()
	select {
	case o := <-done:
		return o.session, o.tools, o.err
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// list returns a server's tools from all pages.
func list(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list its tools: %w", err)
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil || len(schema) > maxSchema {
			return nil, fmt.Errorf("its tool %.60q has a schema of more than %d bytes", t.Name, maxSchema)
		}
		t.InputSchema = accepted(schema)
		if all = append(all, t); len(all) > maxTools {
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		}
	}
	return all, nil
}

// accepted returns the schema of a tool's arguments, or the schema of any object if it is invalid. Model APIs
// reject the whole request if one tool has no valid object schema.
func accepted(text json.RawMessage) json.RawMessage {
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err == nil && schema.Type == "object" {
		if _, err := schema.Resolve(nil); err == nil {
			return text
		}
	}
	return json.RawMessage(`{"type":"object"}`)
}

// change records that the server of a session has changed its tools.
func (c *connection) change(session *sdk.ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = session
	c.refreshTools()
}

// refreshTools refreshes the tools after a change. Refreshes are serialized and coalesced. The caller holds c.mu.
func (c *connection) refreshTools() {
	if c.reading || c.changed == nil || c.changed != c.session {
		return
	}
	c.reading = true
	go func() {
		for c.refreshOnce() {
		}
	}()
}

// refreshOnce refreshes the tools if they have changed, and reports whether to check for changes again.
func (c *connection) refreshOnce() bool {
	c.mu.Lock()
	session := c.session
	if c.changed == nil || c.changed != session {
		c.reading = false
		c.mu.Unlock()
		return false
	}
	c.changed = nil
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.set.options.ConnectTime)
	defer cancel()
	tools, err := list(ctx, session)
	c.mu.Lock()
	current := c.session == session
	first := current && err != nil && !c.stale
	switch {
	case first:
		c.stale = true
	case current && err == nil:
		c.tools = tools
	}
	c.mu.Unlock()
	if stale := c.set.options.Stale; first && stale != nil {
		stale(Failure{c.server.Name, err})
	}
	if err != nil {
		return true
	}
	if told := c.set.options.Changed; current && told != nil {
		told()
	}
	return true
}

// way is a means to reach a server.
type way struct {
	transport sdk.Transport
	end       func()            // closes it permanently
	explain   func(error) error // adds the server's output to an error
}

func (c *connection) reach(ctx context.Context, s servers.Server) (way, error) {
	if s.URL == "" {
		return c.program(ctx, s)
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		return way{}, err
	}
	client := &http.Client{Transport: &withHeaders{to: c.set.options.HTTP, host: at.Host, headers: s.Headers}}
	w := way{end: func() {}, explain: func(err error) error { return err }}
	w.transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: maxMessage}
	if s.Events {
		w.transport = &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: client}
	}
	return w, nil
}

// maxMessage limits the size of a server's message in bytes.
const maxMessage = 16 << 20

// withHeaders adds a server's headers to its requests. It refuses requests to other hosts.
type withHeaders struct {
	to      http.RoundTripper
	host    string
	headers map[string]string
}

func (h *withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	to := h.to
	if to == nil {
		to = http.DefaultTransport
	}
	if r.URL.Host != h.host {
		return nil, fmt.Errorf("it sends coven to another host, %s", r.URL.Host)
	}
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		r.Header.Set(name, value)
	}
	answer, err := to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind := strings.ToLower(answer.Header.Get("Content-Type")); !strings.HasPrefix(kind, "text/event-stream") { // the SDK limits the size of events
		answer.Body = &limitedBody{answer.Body, maxMessage}
	}
	return answer, nil
}

// limitedBody is a response body that fails when it is too long.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("its answer has more than %d bytes", maxMessage)
	}
	return n, err
}

// tool returns a tool of the server with the given name.
func (c *connection) tool(name string, t *sdk.Tool) Tool {
	schema, _ := json.Marshal(t.InputSchema) // list has already encoded it
	text := strings.ToValidUTF8(t.Description[:min(len(t.Description), maxText)], "")
	readOnly := t.Annotations != nil && t.Annotations.ReadOnlyHint
	return Tool{Server: c.server.Name, Original: t.Name, Tool: tool.Tool{
		Kind: tool.Kind{Name: name}, Description: text, Schema: schema, ReadOnly: readOnly,
		Call: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			return c.call(ctx, t.Name, arguments)
		},
	}}
}

// call calls a tool of the server.
func (c *connection) call(ctx context.Context, name string, arguments json.RawMessage) (string, error) {
	session, err := c.open(ctx)
	if err != nil {
		return "", fmt.Errorf("the MCP server %s cannot be used: %w", c.server.Name, err)
	}
	limit := c.set.options.CallTime
	timed, cancel := context.WithTimeoutCause(ctx, limit, late(limit))
	defer cancel()
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	token, done := c.reporting(ctx)
	defer done()
	params.SetProgressToken(token)
	result, err := session.CallTool(timed, params)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case timed.Err() != nil:
		return "", fmt.Errorf("the MCP server %s: %w", c.server.Name, context.Cause(timed))
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF):
		c.lost(session)
		return "", fmt.Errorf("the MCP server %s: %w", c.server.Name, errEnded)
	case err != nil:
		return "", fmt.Errorf("the MCP server %s: %w", c.server.Name, err)
	}
	return text(result)
}

// open returns the session. It restarts a server that has ended.
func (c *connection) open(ctx context.Context) (*sdk.ClientSession, error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	c.mu.Lock()
	session, restarts, closed := c.session, c.restarts, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case session != nil:
		return session, nil
	case restarts >= maxRestarts:
		return nil, fmt.Errorf("it ended %d times", restarts+1)
	}
	c.mu.Lock()
	c.restarts++
	c.mu.Unlock()
	if err := c.connect(ctx); err != nil {
		return nil, fmt.Errorf("start it again: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, nil
}

// lost drops the session of a server that has ended.
func (c *connection) lost(session *sdk.ClientSession) {
	c.mu.Lock()
	end := c.end
	if c.session != session {
		end = nil
	} else {
		c.session, c.end = nil, nil
	}
	c.mu.Unlock()
	if end != nil {
		end()
	}
}

func (c *connection) close() {
	c.mu.Lock()
	session, end := c.session, c.end
	c.session, c.end, c.closed = nil, nil, true
	c.mu.Unlock()
	if session == nil {
		return
	}
	over := make(chan struct{})
	go func() { _ = session.Close(); close(over) }()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	if c.server.URL != "" { // notify the server that the session has ended
		select {
		case <-over:
		case <-timer.C:
		}
	}
	end()
}

// reporting returns the progress token for a call. The caller must call done after the call.
func (c *connection) reporting(ctx context.Context) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token++
	token = strconv.Itoa(c.token)
	if c.reports == nil {
		c.reports = map[string]func(string){}
	}
	c.reports[token] = func(text string) { tool.Progress(ctx, text) }
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reports, token)
	}
}

func (c *connection) progress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	c.mu.Lock()
	report := c.reports[token]
	c.mu.Unlock()
	if report == nil {
		return
	}
	text := r.Params.Message
	if text == "" && r.Params.Total > 0 {
		text = fmt.Sprintf("%s: %.0f of %.0f", c.server.Name, r.Params.Progress, r.Params.Total)
	}
	report(text[:min(len(text), maxText)])
}
