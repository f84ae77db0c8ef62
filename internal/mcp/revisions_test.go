package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/tool"
)

// raw speaks JSON-RPC without the SDK.
type raw struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	next int
}

// serve starts a server on a pipe.
func serve(t *testing.T, run func(in io.Reader, out io.WriteCloser) error) *raw {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- errors.Join(run(inR, outW), outW.Close()) }()
	t.Cleanup(func() {
		if err := errors.Join(inW.Close(), <-over); err != nil {
			t.Error(err)
		}
	})
	return &raw{t: t, in: inW, out: bufio.NewReader(outR)}
}

func (r *raw) send(message string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, message+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// reply is a line of the server.
type reply struct {
	ID     int
	Method string
	Params json.RawMessage
	Result struct {
		ProtocolVersion   string
		SupportedVersions []string
		ResultType        string
		RequestState      string
		InputRequests     map[string]json.RawMessage
		IsError           bool
		Content           []struct{ Text string }
		Tools             []struct{ Name string }
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// receive returns the next line.
func (r *raw) receive() (got reply) {
	r.t.Helper()
	line, err := r.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &got)
	}
	if err != nil {
		r.t.Fatalf("%v: %s", err, line)
	}
	return got
}

// call returns the answer to a request. params are the members of an object.
func (r *raw) call(method, params string) reply {
	r.t.Helper()
	r.next++
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, r.next, method, params))
	got := r.receive()
	if got.ID != r.next {
		r.t.Fatalf("got %+v as the answer to %d", got, r.next)
	}
	return got
}

// meta returns the member of a request in the revision 2026-07-28 and later, which has no handshake.
func meta(version, capabilities string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}`, version, capabilities)
}

const revision = "2026-07-28"

// revisions are the ways to talk to a server. Each returns the members that its requests have in addition.
var revisions = map[string]func(*raw) string{
	"2026-07-28": func(*raw) string { return "," + meta(revision, "{}") },
	"2026-07-28, discovered": func(r *raw) string {
		got := r.call("server/discover", meta(revision, "{}"))
		if !slices.Contains(got.Result.SupportedVersions, revision) || !slices.Contains(got.Result.SupportedVersions, "2025-06-18") {
			r.t.Errorf("discovered %+v", got)
		}
		return "," + meta(revision, "{}")
	},
	"2025-06-18": func(r *raw) string { return r.initialize("2025-06-18", "2025-06-18") },
	"2024-11-05": func(r *raw) string { return r.initialize("2024-11-05", "2024-11-05") },
	"2025-06-18 after a discovery that is refused": func(r *raw) string {
		got := r.call("server/discover", meta("2099-01-01", "{}"))
		if got.Error == nil || !strings.Contains(string(got.Error.Data), revision) {
			r.t.Errorf("discovered %+v", got)
		}
		return r.initialize("2025-06-18", "2025-06-18")
	},
}

func (r *raw) initialize(version, negotiated string) string {
	r.t.Helper()
	got := r.call("initialize", fmt.Sprintf(`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}`, version))
	if got.Result.ProtocolVersion != negotiated {
		r.t.Errorf("initialized %+v", got)
	}
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return ""
}

// The gate and coven mcp serve answer each revision of the protocol: with and without the handshake.
func TestRevisions(t *testing.T) {
	work := named("work", func(ctx context.Context, arguments json.RawMessage) (string, error) {
		tool.Progress(ctx, "half")
		return "worked with " + string(arguments), nil
	})
	for name, begin := range revisions {
		t.Run("gate/"+name, func(t *testing.T) {
			f := listen(t, work)
			r := serve(t, func(in io.Reader, out io.WriteCloser) error { return mcp.Bridge(in, out, f.getenv) })
			more := begin(r)
			r.tools(more, "approve", "work")
			for tool, behavior := range map[string]string{"Read": "allow", "Write": "deny"} {
				got := r.call("tools/call", fmt.Sprintf(`"name":"approve","arguments":{"tool_name":%q,"input":{"x":1},"tool_use_id":"u"}%s`, tool, more))
				if asked := <-f.calls; asked.Tool != tool || len(got.Result.Content) != 1 || !strings.Contains(got.Result.Content[0].Text, `"behavior":"`+behavior+`"`) {
					t.Errorf("%s: asked %+v, got %+v", tool, asked, got)
				}
			}
			r.work(more)
		})
		t.Run("serve/"+name, func(t *testing.T) {
			r := serve(t, func(in io.Reader, out io.WriteCloser) error {
				return mcp.Serve(t.Context(), mcp.ServeOptions{Version: "test", In: in, Out: out, Tools: []tool.Tool{work}})
			})
			more := begin(r)
			r.tools(more, "work")
			r.work(more)
		})
	}
}

// tools checks the list of tools.
func (r *raw) tools(more string, want ...string) {
	r.t.Helper()
	got := r.call("tools/list", strings.TrimPrefix(more, ","))
	var names []string
	for _, one := range got.Result.Tools {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		r.t.Errorf("tools %q, %+v", names, got.Error)
	}
	if _, named := got.Result.Meta["io.modelcontextprotocol/serverInfo"]; named != (more != "") || (got.Result.ResultType == "complete") != named {
		r.t.Errorf("listed %+v", got.Result)
	}
}

// work checks a call that reports its progress.
func (r *raw) work(more string) {
	r.t.Helper()
	with := `"_meta":{"progressToken":"p"}`
	if more != "" {
		with = strings.Replace(strings.TrimPrefix(more, ","), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	}
	r.next++
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work","arguments":{"query":"x"},%s}}`, r.next, with))
	if half := r.receive(); half.Method != "notifications/progress" || !strings.Contains(string(half.Params), `"half"`) {
		r.t.Errorf("no progress, but %+v", half)
	}
	if got := r.receive(); got.ID != r.next || len(got.Result.Content) != 1 || got.Result.Content[0].Text != `worked with {"query":"x"}` {
		r.t.Errorf("got %+v", got)
	}
}

// A question goes to the user of a program that says in the request itself that it can ask. Programs with a
// handshake are asked with a request of their own.
func TestRevisionsOfAQuestion(t *testing.T) {
	inquiry := mcp.Inquiry{
		Tool:     named("decide", nil),
		Question: func(json.RawMessage) (string, error) { return "Really?", nil },
		Answer:   func(a mcp.Reply) (string, error) { return fmt.Sprint(a.Approved, " ", a.Reason), nil },
	}
	start := func(t *testing.T) *raw {
		return serve(t, func(in io.Reader, out io.WriteCloser) error {
			return mcp.Serve(t.Context(), mcp.ServeOptions{Version: "test", In: in, Out: out, Inquiries: []mcp.Inquiry{inquiry}})
		})
	}
	const call, answer = `"name":"decide","arguments":{}`, `{"action":"accept","content":{"reason":"because"}}`
	t.Run(revision, func(t *testing.T) {
		r := start(t)
		r.call("server/discover", meta(revision, "{}"))
		if got := r.call("tools/call", call+","+meta(revision, "{}")); !got.Result.IsError {
			t.Errorf("asked a program without a user: %+v", got)
		}
		can := "," + meta(revision, `{"elicitation":{}}`)
		got := r.call("tools/call", call+can)
		if !strings.Contains(string(got.Result.InputRequests["approval"]), "Really?") || got.Result.RequestState == "" {
			t.Fatalf("not asked: %+v", got)
		}
		state := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":%s}`, got.Result.RequestState, answer)
		if got = r.call("tools/call", call+state+can); len(got.Result.Content) != 1 || got.Result.Content[0].Text != "true because" {
			t.Errorf("answered: %+v", got)
		}
	})
	t.Run("2025-06-18", func(t *testing.T) {
		r := start(t)
		r.call("initialize", `"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}`)
		r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		r.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + call + `}}`)
		asked := r.receive()
		if asked.Method != "elicitation/create" || !strings.Contains(string(asked.Params), "Really?") {
			t.Fatalf("not asked: %+v", asked)
		}
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, asked.ID, answer))
		if got := r.receive(); got.ID != 7 || len(got.Result.Content) != 1 || got.Result.Content[0].Text != "true because" {
			t.Errorf("answered: %+v", got)
		}
	})
}
