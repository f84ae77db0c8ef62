package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/tool"
)

// patience is much longer than any step of these tests.
const patience = time.Minute

// decider allows Read and records the calls.
type decider struct{ calls chan gate.Call }

func (d decider) Decide(_ context.Context, call gate.Call) gate.Verdict {
	d.calls <- call
	if call.Tool == "Read" {
		return gate.Verdict{Allow: true}
	}
	return gate.Verdict{Message: "coven refused " + call.Tool}
}

type fixture struct {
	listener *mcp.Listener
	calls    chan gate.Call
	refused  chan error
	admit    atomic.Bool
	closed   bool
	excuse   string
	tools    []tool.Tool
}

func listen(t *testing.T, tools ...tool.Tool) *fixture {
	t.Helper()
	f := &fixture{calls: make(chan gate.Call, 10), refused: make(chan error, 10), tools: tools}
	f.admit.Store(true)
	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f.listener, err = mcp.Listen(t.Context(), mcp.Options{
		Version: "test", Dir: dir, Decider: decider{f.calls},
		Admit:   func(pid int) bool { return pid == os.Getpid() && f.admit.Load() },
		Refused: func(err error) { f.refused <- err },
		Excuse:  func(int) string { return f.excuse },
		Tools:   f.tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.closed {
			return
		}
		if err := f.listener.Close(); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return f
}

func (f *fixture) getenv(key string) string {
	for _, kv := range f.listener.Env() {
		if value, ok := strings.CutPrefix(kv, key+"="); ok {
			return value
		}
	}
	return ""
}

// connect connects like an agent CLI, with a bridge and an MCP client.
func (f *fixture) connect(t *testing.T) (session *sdk.ClientSession, bridge chan error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	bridge = make(chan error, 1)
	go func() {
		bridge <- errors.Join(mcp.Bridge(inR, outW, f.getenv), outW.Close())
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, bridge
}

func ask(t *testing.T, s *sdk.ClientSession, arguments any) map[string]any {
	t.Helper()
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ApproveTool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(result.Content[0].(*sdk.TextContent).Text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestApprove(t *testing.T) {
	f := listen(t)
	session, bridge := f.connect(t)
	input := map[string]any{"file_path": "/w/<a>&b"}
	answer := ask(t, session, map[string]any{"tool_name": "Read", "input": input, "tool_use_id": "t1"})
	if answer["behavior"] != "allow" || answer["updatedInput"].(map[string]any)["file_path"] != "/w/<a>&b" {
		t.Errorf("allowed: %v", answer)
	}
	if call := <-f.calls; call.ID != "t1" || call.Tool != "Read" || !strings.Contains(string(call.Input), "file_path") {
		t.Errorf("decided about %+v", call)
	}
	answer = ask(t, session, map[string]any{"tool_name": "WebFetch", "input": map[string]any{}, "tool_use_id": "t2"})
	if answer["behavior"] != "deny" || answer["message"] != "coven refused WebFetch" {
		t.Errorf("refused: %v", answer)
	}
	// Malformed calls are denied without asking.
	<-f.calls
	answer = ask(t, session, map[string]any{"tool_name": "Read", "input": input})
	if answer["behavior"] != "deny" || len(f.calls) != 0 {
		t.Errorf("without an id: %v", answer)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the bridge to end", bridge)
	await(t, "the loss to be told", f.listener.Lost())
}

// When coven closes the connection, the bridge ends.
func TestBridgeEndsWithCoven(t *testing.T) {
	f := listen(t)
	_, bridge := f.connect(t)
	if err := f.listener.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the bridge to end", bridge)
	f.closed = true
}

func TestGreeting(t *testing.T) {
	for name, hello := range map[string]string{
		"wrong token": "not the token\n",
		"no token":    "",
		"half":        "half",
	} {
		t.Run(name, func(t *testing.T) {
			f := listen(t)
			conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, hello); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			await(t, "the refusal", f.refused)
			if text, err := io.ReadAll(conn); len(text) > 0 {
				t.Errorf("a stranger was told %q, %v", text, err)
			}
			_ = conn.Close()
		})
	}
}

// The token alone is not sufficient: the kernel identifies the caller.
func TestStranger(t *testing.T) {
	f := listen(t)
	f.admit.Store(false)
	err := mcp.Bridge(strings.NewReader(""), io.Discard, f.getenv)
	if err != nil && !strings.Contains(err.Error(), "copy the messages of the gate") && !strings.Contains(err.Error(), "connect to the coven") {
		t.Errorf("the bridge: %v", err)
	}
	await(t, "the refusal", f.refused)
	select {
	case <-f.listener.Lost():
		t.Error("a stranger's leaving counts as the loss of the gate")
	default:
	}
}

func named(name string, call func(context.Context, json.RawMessage) (string, error)) tool.Tool {
	return tool.Tool{Kind: tool.Kind{Name: name}, Schema: json.RawMessage(`{"type":"object"}`), Call: call}
}

// A tool is cancelled when its caller disconnects, and Close waits only for that.
func TestToolOfCallerThatLeaves(t *testing.T) {
	began, told := make(chan bool, 1), make(chan error, 1)
	f := listen(t, named("work", func(ctx context.Context, _ json.RawMessage) (string, error) {
		began <- true
		<-ctx.Done()
		told <- ctx.Err()
		return "", ctx.Err()
	}))
	conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv))
	if err != nil {
		t.Fatal(err)
	}
	lines := f.getenv(mcp.TokenEnv) + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"work","arguments":{}}}` + "\n"
	if _, err := io.WriteString(conn, lines); err != nil {
		t.Fatal(err)
	}
	await(t, "the tool to begin", began)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the tool to be told", told)
}

// Calls start in the order of their arrival, even if some fail before a tool is called.
func TestCallsBeginInOrder(t *testing.T) {
	order := make(chan string, 100)
	f := listen(t, named("work", func(_ context.Context, arguments json.RawMessage) (string, error) {
		order <- string(arguments)
		return "done", nil
	}))
	conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	lines := f.getenv(mcp.TokenEnv) + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for i := range 50 {
		name := "work"
		if i%5 == 0 {
			name = "unknown"
		}
		lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d}}}`+"\n", i+2, name, i)
	}
	if _, err := io.WriteString(conn, lines); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if i%5 == 0 {
			continue
		}
		select {
		case got := <-order:
			if got != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("call %d is %s", i, got)
			}
		case <-time.After(patience):
			t.Fatalf("call %d does not begin", i)
		}
	}
}

// A refused caller that belongs to another agent of this coven gets the reason from any tool.
func TestExcuse(t *testing.T) {
	f := listen(t, named("work", func(context.Context, json.RawMessage) (string, error) {
		t.Error("a stranger's call was run")
		return "", nil
	}))
	f.excuse = "you are too deep"
	f.admit.Store(false)
	text, err := mcp.Call(t.Context(), f.getenv, "test", "work", map[string]any{})
	if !errors.Is(err, mcp.ErrTool) || err.Error() != "you are too deep" || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	await(t, "the refusal", f.refused)
	forged := func(key string) string {
		if key == mcp.TokenEnv {
			return "forged"
		}
		return f.getenv(key)
	}
	f.admit.Store(true)
	if _, err := mcp.Call(t.Context(), forged, "test", "work", map[string]any{}); !errors.Is(err, mcp.ErrTool) {
		t.Errorf("with a forged token: %v", err)
	}
	await(t, "the refusal", f.refused)

	f.excuse = "" // for a process that belongs to no agent
	f.admit.Store(false)
	if _, err := mcp.Call(t.Context(), f.getenv, "test", "work", map[string]any{}); err == nil || errors.Is(err, mcp.ErrTool) {
		t.Errorf("a stranger got an answer: %v", err)
	}
	await(t, "the refusal", f.refused)
}

// An agent's commands can call its tools.
func TestCall(t *testing.T) {
	f := listen(t, named("work", func(_ context.Context, arguments json.RawMessage) (string, error) {
		if string(arguments) == `{"fail":true}` {
			return "", errors.New("it failed")
		}
		return "done", nil
	}))
	if text, err := mcp.Call(t.Context(), f.getenv, "test", "work", map[string]any{}); text != "done" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := mcp.Call(t.Context(), f.getenv, "test", "work", map[string]any{"fail": true}); !errors.Is(err, mcp.ErrTool) || err.Error() != "it failed" {
		t.Errorf("a tool that fails: %v", err)
	}
}

// A tool is not called with arguments that its reader and the gate could understand differently, or that do not fit its
// schema.
func TestAmbiguousCall(t *testing.T) {
	f := listen(t, named("work", func(_ context.Context, arguments json.RawMessage) (string, error) {
		return "ran with " + string(arguments), nil
	}))
	for arguments, want := range map[string]string{
		`{"a":{"query":"x","query":"y"}}`: `wrong arguments: "query" occurs twice`,
		`{"query":"x","QUERY":"y"}`:       `wrong arguments: "query" and "QUERY" differ only by case`,
		`{"query":"x"}`:                   `ran with {"query":"x"}`,
	} {
		text, err := mcp.Call(t.Context(), f.getenv, "test", "work", json.RawMessage(arguments))
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: %q, want %q", arguments, text, want)
		}
	}
}

func TestBridgeByHand(t *testing.T) {
	err := mcp.Bridge(strings.NewReader(""), io.Discard, func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("Bridge = %v", err)
	}
}

func await[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

func TestMember(t *testing.T) {
	depth, ours := 0, true
	dir := t.TempDir()
	short, err := os.MkdirTemp("", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	l, err := mcp.Listen(t.Context(), mcp.Options{
		Version: "test", Dir: short, Decider: decider{},
		Admit:   func(int) bool { t.Error("a process that only asks was to be admitted"); return true },
		Refused: func(err error) { t.Error(err) },
		Member:  func(pid int) (int, bool) { return depth, ours && pid == os.Getpid() },
	})
	if err != nil {
		t.Fatal(err)
	}
	withdraw, err := l.Announce(filepath.Join(dir, "gates"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "gates", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("announced: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimSpace(string(text))
	for _, is := range []struct {
		depth  int
		member bool
	}{{0, true}, {1, true}, {0, false}} {
		depth, ours = is.depth, is.member
		if d, member, err := mcp.Member(socket); err != nil || member != is.member || d != is.depth {
			t.Errorf("%+v: depth %d, %t, %v", is, d, member, err)
		}
	}
	if err := errors.Join(withdraw(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mcp.Member(socket); !errors.Is(err, mcp.ErrNoGate) {
		t.Errorf("of a gate that is closed: %v", err)
	}
	if files, _ := os.ReadDir(filepath.Join(dir, "gates")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// The length of a greeting is limited, because its sender is not authenticated.
func TestEndlessGreeting(t *testing.T) {
	f := listen(t)
	conn, err := net.Dial("unix", f.getenv(mcp.SocketEnv))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	_, _ = conn.Write([]byte(strings.Repeat("x", 1<<16)))
	if err := <-f.refused; !strings.Contains(err.Error(), "sent no token: bufio: buffer full") {
		t.Error(err)
	}
}
