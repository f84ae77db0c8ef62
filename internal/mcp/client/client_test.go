package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/fake/fakemcp"
	"github.com/coven-run/coven/internal/mcp/client"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/tool"
)

// role is the variable that turns the test binary into a server with the behavior named by its value.
const role = "COVEN_TEST_SERVER"

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		os.Exit(fakemcp.Main([]string{as}))
	}
	os.Exit(m.Run())
}

// options starts the test binary as each server, in the role given by its first argument.
func options(t *testing.T) client.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return client.Options{
		Version: "1", Getenv: func(name string) string { return map[string]string{"KEY": "k-1"}[name] },
		Start: func(ctx context.Context, s servers.Server) (*exec.Cmd, func(), error) {
			cmd := exec.CommandContext(ctx, self)
			cmd.Env = append(os.Environ(), role+"="+s.Argv[0])
			for name, value := range s.Env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			return cmd, func() {}, nil
		},
		ConnectTime: time.Minute,
	}
}

func connect(t *testing.T, o client.Options, all ...servers.Server) *client.Set {
	t.Helper()
	set := client.Connect(t.Context(), all, o)
	t.Cleanup(set.Close)
	return set
}

func named(set *client.Set) (all []string) {
	for _, t := range set.Tools() {
		all = append(all, t.Name)
	}
	return all
}

func call(t *testing.T, set *client.Set, name, arguments string) (string, error) {
	t.Helper()
	all := set.Tools()
	i := slices.IndexFunc(all, func(t client.Tool) bool { return t.Name == name })
	if i < 0 {
		t.Fatalf("no tool %s among %v", name, named(set))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return all[i].Call(ctx, json.RawMessage(arguments))
}

// T-08 T-23: All pages of the tools of all servers are read, ambiguous names are prefixed with the server's name, and
// one bad server does not affect the rest.
func TestConnect(t *testing.T) {
	o := options(t)
	o.Taken = []string{"fail"}
	set := connect(t, o,
		servers.Server{Name: "one", Argv: []string{"good"}, Env: map[string]string{"SECRET_KEY": "${KEY}"}},
		servers.Server{Name: "two", Line: "good"},
		servers.Server{Name: "broken", Argv: []string{"broken"}},
		servers.Server{Name: "unset", Argv: []string{"good", "${NOT_SET}"}},
	)
	if got := strings.Join(named(set), " "); got != "one_act one_fail one_look two_act two_fail two_look" {
		t.Errorf("tools: %s", got)
	}
	failures := set.Failures()
	if len(failures) != 2 || failures[0].Server != "broken" || !strings.Contains(failures[0].Err.Error(), "no licence") ||
		failures[1].Err.Error() != "server unset needs the variable NOT_SET, which is not set" {
		t.Errorf("failures: %v", failures)
	}
	if text, err := call(t, set, "one_look", `{"path":"a"}`); text != "saw a with k-1" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if text, err := call(t, set, "two_look", `{"path":"a"}`); text != "saw a with " || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if text, err := call(t, set, "one_fail", `{"path":"a"}`); text != "" || err == nil || err.Error() != "it is broken" {
		t.Errorf("%q %v", text, err)
	}
}

// A server's tool gets a unique name that is not too long for a model API.
func TestNames(t *testing.T) {
	at := func(tools ...string) string {
		s := sdk.NewServer(&sdk.Implementation{Name: "named", Version: "1"}, nil)
		for _, name := range tools {
			s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name}}}, nil
			})
		}
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
		t.Cleanup(web.Close)
		return web.URL
	}
	long := strings.Repeat("l", 70)
	alike := []string{"agent"}
	for n := range 120 {
		alike = append(alike, long+strconv.Itoa(n))
	}
	o := options(t)
	o.Taken = []string{"spawn_agent", "read"}
	set := connect(t, o, servers.Server{Name: "spawn", URL: at("agent", "read", "réad", "r.ad", "r_ad")}, servers.Server{Name: "b", URL: at(alike...)})
	seen := map[string]bool{"spawn_agent": true, "read": true}
	for _, one := range set.Tools() {
		if seen[one.Name] || len(one.Name) > 64 {
			t.Errorf("%s of %s is named %s", one.Original, one.Server, one.Name)
		}
		seen[one.Name] = true
		if text, err := one.Call(t.Context(), json.RawMessage(`{}`)); text != one.Original || err != nil {
			t.Errorf("%s called %s, want %s: %v", one.Name, text, one.Original, err)
		}
	}
	for _, name := range []string{"spawn_agent_2", "spawn_read", "b_agent"} {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// A unique name is not changed, and progress notifications of the server arrive.
func TestCall(t *testing.T) {
	set := connect(t, options(t), servers.Server{Name: "one", Argv: []string{"good"}})
	if got := strings.Join(named(set), " "); got != "act fail look" {
		t.Errorf("tools: %s", got)
	}
	all := set.Tools()
	if !all[2].ReadOnly || all[0].ReadOnly || all[2].Description != "Looks" || all[2].Server != "one" {
		t.Errorf("%+v", all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reported string
	ctx = tool.WithProgress(ctx, func(text string) { reported = text; cancel() })
	if _, err := all[0].Call(ctx, json.RawMessage(`{"path":"report"}`)); !errors.Is(err, context.Canceled) || reported != "half of it" {
		t.Errorf("%q %v", reported, err)
	}
	if text, err := call(t, set, "act", `{"path":"big"}`); err != nil || len(text) > 300<<10 || !strings.HasSuffix(text, "bytes more are left out)") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := call(t, set, "act", `{"path":"picture"}`); err != nil || text != "(an image of type image/png, 5 bytes)" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := call(t, set, "act", `{"path":5}`); err == nil {
		t.Error("arguments that do not fit were accepted")
	}
}

// A server may change its tools.
func TestListChanged(t *testing.T) {
	o := options(t)
	changed := make(chan struct{}, 9)
	o.Changed = func() { changed <- struct{}{} }
	set := connect(t, o, servers.Server{Name: "one", Argv: []string{"good"}})
	if _, err := call(t, set, "act", `{"path":"more"}`); err != nil {
		t.Fatal(err)
	}
	<-changed
	if text, err := call(t, set, "new", `{"path":""}`); text != "new" || err != nil {
		t.Errorf("%q %v", text, err)
	}
}

// A server that ends is restarted for the next call, up to three times. The call is not repeated.
func TestRestart(t *testing.T) {
	set := connect(t, options(t), servers.Server{Name: "one", Argv: []string{"good"}})
	for n := range 4 {
		for range 2 { // the server outlives the call that started it
			if text, err := call(t, set, "look", `{"path":"a"}`); err != nil || text != "saw a with " {
				t.Fatalf("%d: %q %v", n, text, err)
			}
		}
		if _, err := call(t, set, "act", `{"path":"die"}`); err == nil || !strings.Contains(err.Error(), "the server ended, maybe during the call") {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if _, err := call(t, set, "look", `{"path":"a"}`); err == nil || !strings.Contains(err.Error(), "it ended 4 times") {
		t.Fatal(err)
	}
}

// Servers that never answer, or that send invalid or too much data, do not block an agent.
func TestHostile(t *testing.T) {
	o := options(t)
	o.ConnectTime = 300 * time.Millisecond
	set := connect(t, o, servers.Server{Name: "silent", Argv: []string{"silent"}}, servers.Server{Name: "garbage", Argv: []string{"garbage"}},
		servers.Server{Name: "flood", Argv: []string{"flood"}})
	if len(set.Failures()) != 3 || len(set.Tools()) != 0 {
		t.Errorf("%v", set.Failures())
	}
	if err := set.Failures()[2].Err; err.Error() != "it does not answer within 300ms" {
		t.Error(err)
	}
}

// A call ends with its context, and the server is notified. A call that takes too long ends, too.
func TestCancel(t *testing.T) {
	told := t.TempDir() + "/told"
	o := options(t)
	set := connect(t, o, servers.Server{Name: "one", Argv: []string{"good"}, Env: map[string]string{"TOLD": told}})
	ctx, cancel := context.WithCancelCause(t.Context())
	i := slices.IndexFunc(set.Tools(), func(t client.Tool) bool { return t.Name == "act" })
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := set.Tools()[i].Call(ctx, json.RawMessage(`{"path":"wait"}`)); err == nil || err.Error() != "enough" {
			t.Error(err)
		}
	})
	await := func(what string) {
		for {
			if text, _ := os.ReadFile(told); string(text) == what {
				return
			}
			if _, err := call(t, set, "look", `{"path":"a"}`); err != nil { // gives the server time
				t.Fatal(err)
			}
		}
	}
	await("called")
	cancel(errors.New("enough"))
	wg.Wait()
	await("cancelled")
	o.CallTime = time.Millisecond
	slow := connect(t, o, servers.Server{Name: "one", Argv: []string{"good"}})
	if _, err := call(t, slow, "act", `{"path":"wait"}`); err == nil || err.Error() != "the MCP server one: it does not answer within 1ms" {
		t.Error(err)
	}
}

// A server that does not end with its input is killed.
func TestStubborn(t *testing.T) {
	o := options(t)
	var cmd *exec.Cmd
	start := o.Start
	o.Start = func(ctx context.Context, s servers.Server) (c *exec.Cmd, release func(), err error) {
		c, release, err = start(ctx, s)
		cmd = c
		return c, release, err
	}
	set := client.Connect(t.Context(), []servers.Server{{Name: "one", Argv: []string{"stubborn"}}}, o)
	set.Close()
	if cmd.ProcessState == nil {
		t.Error("it still runs")
	}
	if _, err := set.Tools()[0].Call(t.Context(), json.RawMessage(`{"path":"a"}`)); err == nil {
		t.Error("a closed server was called")
	}
}

// An endless answer does not fill the memory.
func TestEndless(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(web.Close)
	set := connect(t, options(t), servers.Server{Name: "web", URL: web.URL})
	if f := set.Failures(); len(f) != 1 || !strings.Contains(f[0].Err.Error(), "its answer has more than 16777216 bytes") {
		t.Errorf("%v", f)
	}
}

// Only the server's own host receives its headers.
func TestHTTP(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	s := fakemcp.New()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	note := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got[r.Host+" "+r.Header.Get("X-Key")]++
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}
	web := httptest.NewServer(note(handler))
	t.Cleanup(web.Close) // runs after the servers are closed
	elsewhere := httptest.NewServer(note(http.RedirectHandler(web.URL, http.StatusTemporaryRedirect)))
	t.Cleanup(elsewhere.Close)
	set := connect(t, options(t), servers.Server{Name: "web", URL: web.URL, Headers: map[string]string{"X-Key": "${KEY}"}},
		servers.Server{Name: "sly", URL: elsewhere.URL, Headers: map[string]string{"X-Key": "sly-${KEY}"}})
	if text, err := call(t, set, "look", `{"path":"a"}`); text != "saw a with " || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if f := set.Failures(); len(f) != 1 || !strings.Contains(f[0].Err.Error(), "it sends coven to another host") {
		t.Errorf("%v", f)
	}
	mu.Lock()
	defer mu.Unlock()
	for seen := range got {
		if !strings.HasSuffix(seen, strings.TrimPrefix(web.URL, "http://")+" k-1") && !strings.HasSuffix(seen, "sly-k-1") {
			t.Errorf("a request with %q", seen)
		}
	}
}
